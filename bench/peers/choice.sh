#!/usr/bin/env bash
# Races `choice.Fit` against Python estimators, on one core and on the same
# simulated choices, and prints log-likelihoods, processor seconds with standard
# errors, and memory.
#
#   bench/peers/choice.sh [TABLE ...]    default: all of choice.py
#
# The peers are Newton in NumPy and xlogit for MNL, L-BFGS in SciPy for nested
# logit (Biogeme 3.3.2 took more than 200 s), xlogit for mixed logit. They start
# with arrays in memory; vitrine reads Parquet, and the seconds of reading are
# apart.
#
#   PYTHON   the Python to use; default python3
#   VENV     a directory for the virtual environment, which is kept and used
#            again; default a temporary one
set -euo pipefail
venv=${VENV:+$(realpath -m "$VENV")}
cd "$(dirname "$0")/../.."
tables=("${@:-}")
[[ -n ${tables[0]} ]] || tables=(mnl-10000 mnl-100000 mnl-1000000 nested mixed)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
venv=${venv:-$dir/venv}
echo "choice: the virtual environment is $venv" >&2
[[ -x $venv/bin/python ]] || "${PYTHON:-python3}" -m venv "$venv"
PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip install --quiet --requirement bench/peers/choice-requirements.txt
go build -o "$dir/choice" ./bench/choice
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
"$venv/bin/python" bench/peers/choice.py make "$dir" "${tables[@]}"
for table in "${tables[@]}"; do
	echo "$table"
	"$dir/choice" "$dir/$table.parquet" "$dir/$table.toml"
	case $table in
	nested) peers=(numpy) ;;
	mixed) peers=(xlogit) ;;
	mnl-1000000) peers=(numpy) ;; # xlogit takes more than five minutes
	*) peers=(numpy xlogit) ;;
	esac
	for peer in "${peers[@]}"; do
		"$venv/bin/python" bench/peers/choice.py fit "$table" "$peer"
	done
done
