#!/bin/sh
# stages: gcc full address
# Every command line in the blocks of README.md and docs/operators.md, in its order, as root, on a system of its own (/etc, /var/lib, /srv,
# /run, /backup and a network that end with the test). tests/tools/page_lines.py knows what must be so before a line, and what it must say;
# a line that it does not know is run as it stands. Stand-ins for systemctl and others do what the units say.
#   FULL=1   docs/operators.md, too
set -eu
BUILD=${BUILD:-build/mbedtls}
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "needs the superuser"; exit 77; }
if [ -z "${PAGE_SYSTEM:-}" ]; then
	PATH=$PATH:/usr/sbin:/sbin
	unshare -mn true 2>/dev/null && command -v ip >/dev/null || { echo "needs namespaces and ip"; exit 77; }
	for page in ${*:-README.md ${FULL:+docs/operators.md}}; do
		PAGE_SYSTEM=$(mktemp -d)
		export PAGE_SYSTEM PATH
		rc=0
		unshare -mn "$0" "$page" || rc=$?
		rm -rf "$PAGE_SYSTEM"
		[ $rc -eq 0 ] || exit $rc
	done
	exit 0
fi
dir=$PAGE_SYSTEM

chmod 755 "$dir"
ip link set lo up
ip address add 10.0.0.5/32 dev lo
mkdir "$dir/bin" "$dir/etc" "$dir/lib" "$dir/backup" "$dir/reader" "$dir/units"
cp "$BUILD/rivulet" "$BUILD/rivuletd" "$dir/bin"
cp -a /etc/. "$dir/etc"
mount --bind "$dir/etc" /etc
mount --bind "$dir/lib" /var/lib
for place in /srv /run /home; do
	mount -t tmpfs -o mode=755 none $place
done
mkdir -p /srv/backup
echo "127.0.0.1 coord.example localhost" >/etc/hosts

# --- stand-ins: users and directories as systemd/ has them; services as their units start, reload and stop them
cat systemd/*.sysusers | while read -r kind name rest; do
	[ "$kind" = u ] || continue
	grep -q "^$name:" /etc/passwd || useradd --system --user-group --no-create-home --home-dir "${rest##* }" --shell /usr/sbin/nologin "$name"
done
cat systemd/*.tmpfiles | sed -n 's/ :/ /g; s/^d //p' | while read -r path mode user group; do
	install -d -m "$mode" -o "$user" -g "$group" "$path"
done
cat >"$dir/bin/systemctl" <<END
#!/bin/sh
# systemctl enable --now|start|stop|reload UNIT, of the units in systemd/
set -eu
verb=\$1
for unit; do :; done
unit=\${unit%.service}
file=$PWD/systemd/\$unit.service pid=$dir/units/\$unit.pid log=$dir/units/\$unit.log
value() { sed -n "s/^\$1=//p" "\$file"; }
[ -e "\$file" ] || { [ "\$unit" = nginx ] && exit 0; echo "Unit \$unit.service not found." >&2; exit 5; }
runs() { [ -s "\$pid" ] && kill -0 "\$(cat "\$pid")" 2>/dev/null; }
case \$verb in
enable | start)
	runs && exit 0
	needs=\$(value ConditionPathExists)
	[ -z "\$needs" ] || [ -e "\$needs" ] || exit 0
	run=\$(value RuntimeDirectory)
	[ -z "\$run" ] || install -d -o "\$(value User)" -g "\$(value User)" "/run/\$run"
	touch "\$log"
	before=\$(wc -c <"\$log")
	(cd / && exec runuser -u "\$(value User)" -- sh -c 'echo \$\$ >&3; exec 3>&-; exec "\$@"' - \$(value ExecStart | sed 's,^/usr/local/bin/,$dir/bin/,') 3>"\$pid" 2>>"\$log") &
	for i in \$(seq 600); do
		tail -c +\$((before + 1)) "\$log" | grep -qE " info started " && exit 0
		sleep 0.05
	done
	tail -c +\$((before + 1)) "\$log" >&2
	exit 1
	;;
stop)
	runs || exit 0
	kill "\$(cat "\$pid")"
	for i in \$(seq 600); do
		runs || exit 0
		sleep 0.05
	done
	exit 1
	;;
reload)
	runs || { echo "\$unit.service is not active" >&2; exit 1; }
	before=\$(wc -c <"\$log")
	MAINPID=\$(cat "\$pid") sh -c "\$(value ExecReload | sed "s/^[^']*'//; s/'\$//")"
	for i in \$(seq 600); do
		tail -c +\$((before + 1)) "\$log" | grep -qE " reload.(done|ignored|failed)" && exit 0
		sleep 0.05
	done
	exit 1
	;;
*) exit 1 ;;
esac
END
cat >"$dir/bin/journalctl" <<END
#!/bin/sh
# journalctl -u UNIT [-p warning]: its log, without the time
words=". (error|warn|info|debug) "
[ "\${3:-}" != -p ] || words=". (error|warn) "
grep -E "\$words" $dir/units/\${2%.service}.log | sed 's/^[^ ]* //'
END
# age -r KEY | age -d FILE
printf '#!/bin/sh\n[ "$1" = -d ] && exec cat "$2"\nexec cat\n' >"$dir/bin/age"
chmod 755 "$dir"/bin/*
export PATH="$dir/bin:$PATH" PAGE_SYSTEM

stop() {
	for unit in rivulet rivuletd; do
		systemctl stop $unit || true
	done
}
trap stop EXIT
trap 'exit 143' INT TERM HUP
python3 tests/tools/page_lines.py "$1"
