#!/bin/sh
# Test the image with three sites in three containers on one host, each in its own network namespace behind a bridge. The
# containers run as they should: without root rights, on a read-only root file system. The script itself needs root,
# buildah, runc, iproute2, and `taciturn` on the path, which makes the folders of the sites.
#   deploy/try.sh
set -eu
image=${IMAGE:-localhost/taciturn}
work=$(mktemp -d)
folder=$work/sites
"$(dirname "$0")/trial.sh" "$folder" 10.77.0.2 10.77.0.3 10.77.0.4
container=$(buildah from "$image")
root=$(buildah mount "$container")
ip link add taciturn0 type bridge
ip addr add 10.77.0.1/24 dev taciturn0
ip link set taciturn0 up

clean() {
  for site in alpha beta gamma; do
    runc delete --force "try-$site" 2>/dev/null || true
    ip netns delete "try-$site" 2>/dev/null || true
  done
  ip link delete taciturn0 2>/dev/null || true
  buildah rm "$container" >/dev/null
}
trap clean EXIT

# While alpha waits for the other sites, show that it refuses status requests without the token, that its root file system
# cannot be written, and that its health check passes.
look() {
  ip netns exec try-beta python3 - "$(cat "$folder/alpha/watch.token")" <<'PYTHON'
import sys, time, urllib.error, urllib.request

def ask(token):
    header = {"Authorization": f"Bearer {token}"}
    try:
        return urllib.request.urlopen(urllib.request.Request("http://10.77.0.2:9464/metrics", headers=header)).status
    except urllib.error.HTTPError as error:
        return error.code

for _ in range(600):
    try:
        print("watch from another container, without the token:", ask(""), "and with it:", ask(sys.argv[1]), flush=True)
        break
    except OSError:
        time.sleep(0.1)
PYTHON
  runc exec try-alpha sh -c 'echo "user $(id -u)"; touch /new 2>&1 || true'
  runc exec try-alpha taciturn site status /site/site.toml > /dev/null && echo "the health check passes"
}

number=2
for site in alpha beta gamma; do
  ip netns add "try-$site"
  ip link add "v$number" type veth peer name eth0 netns "try-$site"
  ip link set "v$number" master taciturn0 up
  ip -n "try-$site" addr add "10.77.0.$number/24" dev eth0
  ip -n "try-$site" link set eth0 up
  ip -n "try-$site" link set lo up
  mkdir -p "$work/$site/disk"
  chown 10001:10001 "$work/$site/disk"
  cat > "$work/$site/config.json" <<JSON
{"ociVersion": "1.0.2", "hostname": "$site", "root": {"path": "$root", "readonly": true},
 "process": {"user": {"uid": 10001, "gid": 10001}, "cwd": "/site", "noNewPrivileges": true, "capabilities": {},
  "args": ["taciturn", "site", "run", "/site/site.toml", "--log", "json"],
  "env": ["PATH=/opt/taciturn/bin:/usr/bin:/bin", "HOME=/tmp", "NUMBA_CACHE_DIR=/tmp/numba", "MPLCONFIGDIR=/tmp/matplotlib",
          "XDG_DATA_HOME=/var/lib", "XDG_RUNTIME_DIR=/run/taciturn", "OMP_NUM_THREADS=1"]},
 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
  {"destination": "/dev/shm", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "noexec", "mode=1777"]},
  {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
  {"destination": "/run/taciturn", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "noexec", "uid=10001", "gid=10001", "mode=700"]},
  {"destination": "/site", "source": "$folder/$site", "options": ["bind", "ro"]},
  {"destination": "/var/lib/taciturn", "source": "$work/$site/disk", "options": ["bind", "rw"]}],
 "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"}, {"type": "network", "path": "/run/netns/try-$site"}]}}
JSON
  [ "$site" != gamma ] || look # alpha and beta wait for gamma, so there is time to look
  runc run --bundle "$work/$site" "try-$site" > "$work/$site/log" 2>&1 &
  number=$((number + 1))
done
wait
for site in alpha beta gamma; do
  echo "$site: $(tail -n 1 "$work/$site/log")"
  sha256sum "$work/$site/disk/state/model.json"
done
echo "logs and results: $work"
[ "$(sha256sum "$work"/*/disk/state/model.json | cut -d ' ' -f 1 | sort -u | wc -l)" -eq 1 ]
