#!/bin/sh
# Make folders for a trial of three sites, each with a job, made-up rows, throw-away keys, and rules that approve the job.
#   deploy/trial.sh deploy/sites                                 for compose.yaml: the hosts are alpha, beta and gamma
#   deploy/trial.sh FOLDER 10.77.0.2 10.77.0.3 10.77.0.4         the hosts are these three addresses
# Needs `taciturn` with the extra `zenoh` on the path.
set -eu
[ $# -eq 1 ] || [ $# -eq 4 ] || { echo "usage: $0 FOLDER [HOST HOST HOST]" >&2; exit 2; }
folder=$1
[ ! -e "$folder" ] || { echo "$folder exists: name a new folder" >&2; exit 2; }
shift
[ $# -eq 3 ] || set -- alpha beta gamma
job=$(mktemp)
trap 'rm -f "$job"' EXIT

cat > "$job" <<TOML
format = 2
kind = "train"
name = "trial"
method = "masked"
rounds = 20
epsilon = 1.0
delta = 1e-5
colluding = 1
loss = "logistic"
C = 100.0
regularization = 0.01
intercept = true
label = { column = "readmitted", positive = "yes" }
graph = "ring"

[schema]
fields = [
  { name = "age", low = 0, high = 110 },
  { name = "ward", values = ["surgery", "medicine", "other"] },
]

[[sites]]
name = "alpha"
endpoint = "tls/$1:7447"
samples = 1200

[[sites]]
name = "beta"
endpoint = "tls/$2:7447"
samples = 900

[[sites]]
name = "gamma"
endpoint = "tls/$3:7447"
samples = 600
TOML
taciturn site kit "$job" "$folder"

authority=--new-authority
for site in alpha:1200 beta:900 gamma:600; do
  rows=${site#*:}
  cd "$folder/${site%:*}"
  sed -i -e 's|^state = "state" |state = "/var/lib/taciturn/state" |' \
    -e 's|^budget = .*|budget = { epsilon = 2.0, unit = "record", colluding = 1 }\napprove = { kinds = ["train"], epsilon = 1.0 }\nwatch = "0.0.0.0:9464"\nwatch_token = "watch.token"|' site.toml
  awk -v rows="$rows" 'BEGIN { srand(rows); print "age,ward,readmitted"; split("surgery medicine other", ward, " ")
    for (k = 0; k < rows; k++) { age = 18 + int(77 * rand()); w = ward[1 + int(3 * rand())]
      print age "," w "," (rand() < 1 / (1 + exp((60 - age) / 10 + (w == "other"))) ? "yes" : "no") } }' > rows.csv
  openssl rand -hex 32 > watch.token
  taciturn site keys site.toml --throw-away ../authority $authority
  chmod 600 watch.token
  authority=
  cd "$OLDPWD"
done
chown -R 10001:10001 "$folder" 2> /dev/null || echo "now run: sudo chown -R 10001:10001 $folder"
