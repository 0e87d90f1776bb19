#!/bin/sh
# stages: gcc openssl address
# The list of devices, a page at a time while devices come and go, picked by the coordinator; and by the command line of what one lists that
# is older.
#   BUILD=build/mbedtls tests/e2e/291-lists.sh
set -u
FLEET_NAME=291-lists
. tests/e2e/common.sh

fleet_start
fleet_admin token create --uses 20 --label site=north -o "$FLEET/many" >/dev/null || fleet_fail "no token"
FLEET_TOKEN=$FLEET/many
for name in n1 n2 n3 n4 n5 n6; do fleet_join $name; done
run 0 fleet_admin device set n2 --label site=south
all() { curl_admin "/v1/devices" | pick '" ".join(x["device"] for x in d["devices"])'; }
first=$(all)

# page QUERY: the ids of a page, and where the next begins, in NEXT
page() {
	curl_admin "/v1/devices?$1" >"$FLEET/page" || fleet_fail "$1: $(cat "$FLEET/page")"
	NEXT=$(pick 'd["next"] or ""' <"$FLEET/page")
	pick '" ".join(x["device"] for x in d["devices"])' <"$FLEET/page" >"$FLEET/ids"
}
# pages QUERY: the ids of all pages
pages() {
	page "$1"
	got=$(cat "$FLEET/ids")
	while [ -n "$NEXT" ]; do
		page "$1&after=$NEXT"
		got="$got $(cat "$FLEET/ids")"
	done
	echo "$got"
}
for limit in 1 2 4 5 6 1000; do [ "$(pages "limit=$limit")" = "$first" ] || fleet_fail "by $limit: $(pages "limit=$limit")"; done
page ""
[ -z "$NEXT" ] && [ "$(cat "$FLEET/ids")" = "$first" ] || fleet_fail "all: $(cat "$FLEET/page")"
page "limit=3"
[ "$NEXT" = "$(echo "$first" | cut -d' ' -f3)" ] || fleet_fail "next of the first page: $NEXT"
# What is picked fills a page; with nothing behind it that is the last.
[ "$(pages "limit=2&where=site=north" | wc -w)" = 5 ] || fleet_fail "pages of north"
page "limit=5&where=site=north"
[ -z "$NEXT" ] && [ "$(wc -w <"$FLEET/ids")" = 5 ] || fleet_fail "a full page with nothing behind: $(cat "$FLEET/page")"
# Behind devices that are not there.
page "after=$(printf '%064d' 0)"
[ "$(cat "$FLEET/ids")" = "$first" ] || fleet_fail "behind nobody: $(cat "$FLEET/page")"
page "after=$(printf 'f%.0s' $(seq 64))"
[ -z "$NEXT$(cat "$FLEET/ids")" ] || fleet_fail "behind all: $(cat "$FLEET/page")"

# Between two pages the last of the first is erased, one leaves the list's filter, and some join: no error, and none twice.
page "limit=3&state=active"
seen=$(cat "$FLEET/ids")
at=$NEXT
gone=$(echo "$first" | cut -d' ' -f5)
run 0 fleet_admin device revoke "$at" "$gone"
run 0 fleet_admin device erase "$at"
for name in n7 n8 n9; do fleet_join $name; done
rest=
while [ -n "$at" ]; do
	page "limit=2&state=active&after=$at"
	rest="$rest $(cat "$FLEET/ids")"
	at=$NEXT
done
# shellcheck disable=SC2086 # a list of ids
printf '%s\n' $seen $rest | sort | uniq -d | grep . && fleet_fail "twice"
for id in $first; do
	case "$seen $rest" in *"$id"*) [ "$id" != "$gone" ] || fleet_fail "a revoked one is listed" ;; *) [ "$id" = "$gone" ] || fleet_fail "not listed: $id" ;; esac
done

# What a query says wrong is an error of the query.
for words in limit=0 limit=1001 after=a where=site state=gone silent_s=7d agent= reason= 'where=a=%zz' 'where=a=%00' where=a=%ff limit=1%00; do
	[ "$(curl -s -o "$FLEET/answer" -w '%{http_code}' --unix-socket "$FLEET/admin.sock" "http://localhost/v1/devices?$words")" = 400 ] || fleet_fail "$words: $(cat "$FLEET/answer")"
done

# picks NAMES OPTION...: the command names these
picks() {
	want=$1
	shift
	run 0 fleet_admin device list --names "$@"
	[ "$(echo "$SAID" | sort | tr '\n' ' ')" = "$want " ] || fleet_fail "device list $*: $SAID instead of $want"
}
fleet_join m1
fleet_join m2
run 0 fleet_admin device set m1 --label 'ort=R&D Köln (50% = halb),site=west'
run 0 fleet_admin device set m2 --label 'site=west'
picks m1 --where 'ort=R&D Köln (50% = halb)'
picks m1 --where 'ort=R&D Köln (50% = halb),site=west' --state active
picks "m1 m2" --where site=west
[ "$(curl_admin /v1/devices -G --data-urlencode 'where=ort=R&D Köln (50% = halb)' --data-urlencode where=site=west | pick '[x["name"] for x in d["devices"]]')" = "['m1']" ] ||
	fleet_fail "by curl's escapes: $(curl_admin /v1/devices -G --data-urlencode 'where=ort=R&D Köln (50% = halb)' --data-urlencode where=site=west 2>&1)"
# A name may have any characters, too.
run 0 fleet_admin device set m2 --name 'Köln & Bonn 50% = 1+1'
run 0 fleet_admin device show 'Köln & Bonn 50% = 1+1'
run 0 fleet_admin device set 'Köln & Bonn 50% = 1+1' --name m2
run 3 fleet_admin device show 'Köln'
run 3 fleet_admin device show "$(printf 'a\nb')"
run 3 fleet_admin device show "$(printf '\377')"
fleet_run m1
spoke() { curl_admin /v1/devices/m1 | pick 'd["last_contact"] is not None and d["agent"] != ""' | grep -qx True; }
within 20 spoke || fleet_fail "m1 said no version"
version=$("$RIVULET" --version | cut -d' ' -f2)
picks m1 --agent "$version"
picks m1 --agent "${version%%+*}"
run 0 fleet_admin device list --names --agent "${version%%.*}.0.99"
[ -z "$SAID" ] || fleet_fail "agents of no version: $SAID"
picks m2 --where site=west --silent 1h
run 6 fleet_admin device list --silent long
run 6 fleet_admin device list --agent ''

# Of a coordinator that knows no such words the command picks itself, and asks at most twice; so does a change of devices.
curl_admin /v1/devices >"$FLEET/devices.json"
older() { # older MODE REQUESTS: with that many requests the command names what it named before
	: >"$FLEET/paths"
	python3 tests/tools/older_lists.py "$FLEET/older.sock" "$FLEET/paths" "$1" "$FLEET/devices.json" &
	older_pid=$!
	ours=$FLEET_PIDS
	FLEET_PIDS="$FLEET_PIDS $older_pid"
	within 10 test -S "$FLEET/older.sock" || fleet_fail "$1: no coordinator"
	run 0 "$RIVULET" device list --socket "$FLEET/older.sock" --names --where 'ort=R&D Köln (50% = halb)' --state active --agent "$version" --silent 1s
	[ "$2 $SAID" = "$(wc -l <"$FLEET/paths") $3" ] || fleet_fail "$1: $SAID by $(cat "$FLEET/paths")"
	run 0 "$RIVULET" device suspend --socket "$FLEET/older.sock" --dry-run --where site=west
	[ "$1" = picks ] || says "2 of 2 devices would be changed"
	kill "$older_pid"
	wait "$older_pid" 2>/dev/null
	FLEET_PIDS=$ours
	rm -f "$FLEET/older.sock"
}
sleep 1.1
older refuses 2 m1
older ignores 1 m1
# It has picked: what it lists is not doubted.
older picks 1 "$(pick '"\n".join(x["name"] for x in d["devices"])' <"$FLEET/devices.json")"
head -1 "$FLEET/paths" | grep -qxF "/v1/devices?state=active&where=ort=R%26D%20K%C3%B6ln%20%2850%25%20=%20halb%29&silent_s=1&agent=$(echo "$version" | sed 's/+/%2B/')" ||
	fleet_fail "asked for $(head -1 "$FLEET/paths")"
fleet_end
echo "$CHECKS commands"
