#!/usr/bin/env bash
# Races Vitrine's learners against Python packages that a user would pick
# instead, and prints the table in Markdown: mean ± standard deviation of the
# final regret, in brackets the paired difference to bma-mnl with its standard
# error, and seconds a run.
#
#   bench/peers/race.sh [SEEDS]    default 10: seeds 0, 1, …
#
# The worlds and customers are those of `vitrine dump`, the same for all. Before
# the race, offers of two of Vitrine's policies are judged again in Python: their
# regrets must be those of `vitrine reproduce`.
#
# Each peer plays as documented, and tuned: for each panel with the best of six
# settings on seeds 1000 and 1001. players.py has the settings.
#
# It needs Python 3.11 or later with venv, and a C compiler: contextualbandits
# comes as source. pip installs the versions of requirements.txt.
#
#   PYTHON   the Python to use; default python3
#   VENV     a directory for the virtual environment, which is kept and used
#            again; default a temporary one
#   JOBS     Python runs at a time; default one for each processor
#
# Vitrine plays on one core, and its seconds are of the wall clock. Those of the
# peers are of processor time, without the judge's. Both are without start-up.
set -euo pipefail
venv=${VENV:+$(realpath -m "$VENV")}
cd "$(dirname "$0")/../.."
seeds=${1:-10}
if [[ $# -gt 1 || ! $seeds =~ ^[1-9][0-9]{0,2}$ ]]; then
	echo "race: bench/peers/race.sh [SEEDS], from 1 to 999" >&2
	exit 2
fi
panels=(main-gaussian-realizable main-gaussian-misspecified worlds-product worlds-threshold)
python=${PYTHON:-python3}
"$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
	echo "race: $python is no Python 3.11 or later with venv; set PYTHON" >&2
	exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
venv=${venv:-$dir/venv}
echo "race: the virtual environment is $venv" >&2
[[ -x $venv/bin/python ]] || "$python" -m venv "$venv"
# The build of contextualbandits takes these versions too.
PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=bench/peers/requirements.txt \
	"$venv/bin/python" -m pip install --quiet --requirement bench/peers/requirements.txt
go build -o "$dir/vitrine" ./cmd/vitrine

# One thread each: the runs go side by side.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
race() { "$venv/bin/python" bench/peers/race.py "$@"; }

"$dir/vitrine" dump "${panels[@]}" --seeds "$seeds" --policies uniform,ucb-mnl-tuned --out "$dir/worlds"
"$dir/vitrine" dump "${panels[@]}" --first-seed 1000 --seeds 2 --out "$dir/tuning"
GOMAXPROCS=1 "$dir/vitrine" reproduce "${panels[@]}" --seeds "$seeds" --workers 1 --baselines tuned \
	--policies bma-mnl,onl-mnl,ucb-mnl,ts-mnl,ofu-mnl-plus,uniform --out "$dir/out" >/dev/null
race check "$dir/out" "${panels[@]/#/$dir/worlds/}"
race tune "$dir/tuned.json" "${panels[@]/#/$dir/tuning/}"
race play "$dir/tuned.json" "$dir/out" "${panels[@]/#/$dir/worlds/}"
