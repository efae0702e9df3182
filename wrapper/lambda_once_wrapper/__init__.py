"""The hook between Lambda's runtime client and the user's handler."""
