"""Publish the layer: ./build.sh publish --help, and docs/publishing.md.

    calls     every request to AWS, printed; in a dry run the writes are only printed
    layers    the zip as a version of the layer in a Region, and who may use it
    pointer   the parameter that names the newest version
    table     docs/layers.md
    sar       the application for the Serverless Application Repository
    __main__  the command

Everything can be repeated: what is there already is left as it is.
"""
