#!/bin/sh
# stages: gcc address
# Data as people have it: pictures and a table are packed and trained on; a picture that claims too much is refused by its header;
# nothing but the client knows a picture's format; a set larger than the memory streams; a text reaches a trainer.
set -u
FLEET_NAME=63-data
. tests/e2e/common.sh
command -v ldd >/dev/null || skip "needs ldd"
fleet_dir
RIVULET=$(realpath "$RIVULET")
CHECKS=0
run() { # run CODE COMMAND...: its output is in SAID
	run_code=$1
	shift
	SAID=$("$@" 2>&1)
	run_got=$?
	[ $run_got -eq "$run_code" ] || fleet_fail "$* ended with $run_got: $SAID"
	CHECKS=$((CHECKS + 1))
}
has() { # has PATTERN...: SAID does
	for pattern; do
		echo "$SAID" | grep -q -- "$pattern" || fleet_fail "no \"$pattern\" in: $SAID"
	done
}

# --- pictures: JPEG by libjpeg, PNG by hand
mkdir "$FLEET/pictures" "$FLEET/bomb" "$FLEET/bomb/a"
"$BUILD/tests/tools/jpegs" "$FLEET/pictures" 3 40 24 || fleet_fail "jpegs"
cat >"$FLEET/png.py" <<'END'
import os, random, struct, sys, zlib
def png(path, width, height, rows, kind=2):
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
top = sys.argv[1]
random.seed(1)
os.mkdir(top + "/pictures/class-99")
for n in range(40):
    row = b"".join(bytes([0, 0, 200 + random.randrange(55)]) for _ in range(24))
    png("%s/pictures/class-99/%d.png" % (top, n), 24, 24, (b"\0" + row) * 24)
# 60,000 x 60,000 pixels, 10 GB, in a few hundred bytes.
png(top + "/bomb/a/bomb.png", 60000, 60000, b"\0" * 1000)
# Two pixels whose values are known: one half transparent.
os.makedirs(top + "/known/a")
png(top + "/known/a/x.png", 2, 1, b"\0" + bytes([10, 20, 30, 255, 0, 0, 0, 0]), 6)
END
python3 -S -E "$FLEET/png.py" "$FLEET" || fleet_fail "pictures"
run 0 "$RIVULET" data pack "$FLEET/pictures" -o "$FLEET/set.rvp" --size 16x16 --json
has '"examples": 160' '"class-99"' '"classes": 4'
run 0 "$RIVULET" data show "$FLEET/set.rvp"
has '160 of shape \[3, 16, 16\]'
run 0 "$RIVULET" data pack "$FLEET/known" -o "$FLEET/known.rvp"
[ "$(tail -c +129 "$FLEET/known.rvp" | head -c 6 | od -An -tu1 | tr -s ' ')" = " 10 255 20 255 30 255" ] ||
	fleet_fail "pixels: $(od -An -tu1 "$FLEET/known.rvp")"

# --- what is wrong is named, and leaves nothing behind
run 6 "$RIVULET" data pack "$FLEET/bomb" -o "$FLEET/bad.rvp"
has 'bomb/a/bomb.png: the header claims 60000 x 60000 pixels'
cp -r "$FLEET/pictures/class-00" "$FLEET/bomb/b"
rm "$FLEET/bomb/a/bomb.png"
head -c 500 "$FLEET/bomb/b/00007.jpg" >"$FLEET/bomb/a/cut.jpg"
run 6 "$RIVULET" data pack "$FLEET/bomb" -o "$FLEET/bad.rvp"
has 'bomb/a/cut.jpg: JPEG: '
cp "$FLEET/known/a/x.png" "$FLEET/bomb/a/cut.jpg"
run 6 "$RIVULET" data pack "$FLEET/bomb" -o "$FLEET/bad.rvp"
has 'bomb/b/00000.jpg has 24 x 24 pixels, the first picture 1 x 2'
echo text >"$FLEET/bomb/a/cut.jpg"
run 6 "$RIVULET" data pack "$FLEET/bomb" -o "$FLEET/bad.rvp"
has 'cut.jpg: this is neither PNG nor JPEG'
[ ! -e "$FLEET/bad.rvp" ] && [ ! -e "$FLEET/bad.rvp.part" ] || fleet_fail "a set was left"
cp "$FLEET/set.rvp" "$FLEET/bad.rvp"
printf 'x' | dd of="$FLEET/bad.rvp" bs=1 seek=5000 conv=notrunc 2>/dev/null
run 7 "$RIVULET" data show "$FLEET/bad.rvp"
has 'another hash'

# --- names of classes that nobody may show: not packed; where a file has them all the same it is not read
for bad in "$(printf 'up\033[2K')" "$(printf 'two\nlines')" "$(printf '%064d' 7)"; do
	mkdir -p "$FLEET/names/$bad"
	cp "$FLEET/known/a/x.png" "$FLEET/names/$bad/"
	run 6 "$RIVULET" data pack "$FLEET/names" -o "$FLEET/bad.rvp"
	has "a class.s name has 1 to 63 bytes, all of which can be shown\\|a name in it has a control character"
	rm -rf "$FLEET/names"
done
python3 -S -E - "$FLEET" <<'END'
import hashlib, sys
top = sys.argv[1]
data = bytearray(open(top + "/set.rvp", "rb").read())
at = data.rindex(b"class-99")
data[at:at + 5] = b"\033[2Jx"
data[96:128] = hashlib.sha256(bytes(data[:96] + data[128:])).digest()
open(top + "/named.rvp", "wb").write(data)
END
run 6 "$RIVULET" data show "$FLEET/named.rvp"
has 'the name of class 3 .* cannot be shown'

# --- a table, by user
cat >"$FLEET/table.csv" <<-END
	user;age;note;weight;kind
	ann;30;"a; b";70;dog
	bob;;none;60;cat
	ann;31;;71;dog
	cid;50;x;90;cow
END
run 6 "$RIVULET" data pack "$FLEET/table.csv" -o "$FLEET/table.rvp" --columns age,weight --group user
has 'table.csv: line 3, column 2: the field is empty'
run 0 "$RIVULET" data pack "$FLEET/table.csv" -o "$FLEET/table.rvp" --columns age,weight --group user --missing skip
has '3 of shape \[2\], numbers' 'names     cow, dog' 'groups    2'

# --- trained on, alone and by a fleet, augmented; the coordinator reads it, too
cat >"$FLEET/pictures.json" <<-END
	{"name": "pictures", "seed": 3,
	 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 4}], "loss": "cross_entropy"},
	 "data": {"name": "pictures", "shape": [3, 16, 16], "classes": ["class-00", "class-01", "class-02", "class-99"],
	          "augment": {"flip": true, "crop": 1, "noise": 0.02, "cutout": 3}},
	 "local": {"epochs": 3, "batch": 5, "optimizer": {"rate": 0.02}},
	 "round": {"goal": 2, "deadline_s": 3600}, "evaluate": {"by": "coordinator", "data": "pictures"}, "stop": {"rounds": 2}}
END
fleet_start "
[data pictures]
format = packed
path = $FLEET/set.rvp"
for n in 1 2; do
	fleet_join "device$n" "
[device]
threads = 1
[data pictures]
format = packed
path = $FLEET/set.rvp
shard = $n/2
partition = dirichlet
alpha = 1
[data named]
format = packed
path = $FLEET/named.rvp
[data called]
format = packed
path = $FLEET/set.rvp
classes = a, b$(printf '\342\200\256'), c, d"
	fleet_run "device$n"
done
job_submit "$FLEET/pictures.json"
job_done 60
curl_admin "/v1/jobs/$JOB/rounds" >"$FLEET/answer"
pick "sum(r['examples'] for r in d['rounds']) == 320 and d['rounds'][1]['evaluate']['accuracy'] > 0.9" <"$FLEET/answer" | grep -qx True ||
	fleet_fail "rounds: $(cat "$FLEET/answer")"
curl_admin "/v1/fleet?data=pictures" | pick "[(x['examples'] or 0) > 0 for x in d['devices']]" | grep -qx '\[True, True\]' ||
	fleet_fail "a set with a bad name spoils the offer: $(curl_admin "/v1/fleet?data=pictures")"
[ "$(grep -c 'data.failed' "$FLEET/device1.log")" = 2 ] || fleet_fail "not told: $(grep data "$FLEET/device1.log")"
fleet_end
sed 's/"class-99"/"class-98"/' "$FLEET/pictures.json" >"$FLEET/other.json"
run 6 "$RIVULET" train "$FLEET/other.json" --home "$FLEET/device1"
has 'class 3 is class-99 here and class-98 in the job'
sed 's/"classes": *\[[^]]*\]/"classes": 4/' "$FLEET/pictures.json" >"$FLEET/other.json"
run 6 "$RIVULET" train "$FLEET/other.json" --home "$FLEET/device1"
has 'has names for its classes, the job has a number: the job.s data want "classes": \["'

# --- picture libraries are the client's alone
for program in "$BUILD/rivuletd" "$BUILD/librivulet.so.1" "$BUILD"/examples/*; do
	[ -x "$program" ] && [ -f "$program" ] || continue
	case $program in *.o | *.d) continue ;; esac
	ldd "$program" >"$FLEET/libraries" || fleet_fail "ldd $program"
	! grep -E 'png|jpeg' "$FLEET/libraries" || fleet_fail "$program knows pictures"
done
ldd "$BUILD/rivulet" | grep -q png || fleet_fail "rivulet does not know pictures: this test sees nothing"

# --- 4 GB of pixels that are nowhere, by a process that may have 128 MiB of its own
cat >"$FLEET/large.py" <<'END'
import array, json, os, random, struct, subprocess, sys, threading, time
top, rivulet, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
side, bytes_ = 64, 4 << 30
count = bytes_ // (side * side)
with open(top + "/images", "wb") as f:
    f.write(struct.pack(">BBBBIII", 0, 0, 8, 3, count, side, side))
    f.truncate(16 + count * side * side)
with open(top + "/labels", "wb") as f:
    f.write(struct.pack(">BBBBI", 0, 0, 8, 1, count) + bytes(i % 10 for i in range(1000)) * (count // 1000) + bytes(count % 1000))
with open(top + "/large.conf", "w") as f:
    f.write("[data large]\nformat = idx\nimages = %s/images\nlabels = %s/labels\n" % (top, top) +
            "shard = 1/2\npartition = label\n")
with open(top + "/large.json", "w") as f:
    json.dump({"name": "large", "seed": 1, "model": {"layers": [{"type": "flatten"}, {"type": "linear", "out": 10}],
               "loss": "cross_entropy"}, "data": {"name": "large", "shape": [1, side, side], "classes": 10, "validation": 0.001},
               "local": {"steps": 50, "batch": 10, "optimizer": {"rate": 0.01}}, "round": {"goal": 1, "deadline_s": 60},
               "stop": {"rounds": 1}}, f)
most = 0
run = subprocess.Popen([rivulet, "train", top + "/large.json", "--config", top + "/large.conf", "--home", top + "/none"],
                       env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
while run.poll() is None:
    try:
        with open("/proc/%d/smaps_rollup" % run.pid) as f:
            most = max([most] + [int(line.split()[1]) for line in f if line.startswith("Anonymous:")])
    except (OSError, ProcessLookupError):
        pass
    time.sleep(0.005)
print("anonymous memory: %d KiB" % most)
sys.exit(run.returncode or not 0 < most < limit)
END
case ${SAN:-} in
?*) echo "skipped: sanitizers need memory of their own" ;;
*)
	run 0 python3 -S -E "$FLEET/large.py" "$FLEET" "$RIVULET" 131072
	has 'anonymous memory'
	echo "ok: 4 GiB, $(echo "$SAID" | tail -1)"
	;;
esac

# --- a text reaches a trainer: windows of the job's length, and the tokens that follow them
cat >"$FLEET/reader.py" <<'END'
import json, struct
def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in head.items() if k != "__metadata__"}
task = json.load(open("task.json"))
t = tensors(task["examples"])
(xt, xs, x), (yt, ys, y) = t["x"], t["y"]
x, y = ["".join(map(chr, struct.unpack("<%di" % (len(v) // 4), v))) for v in (x, y)]
text = open(task["data"]["path"]).read()
T = task["recipe"]["data"]["window"]
half = text[len(text) // 2:]
assert xt == yt == "I32" and xs == ys == [(len(half) - 1) // T, T], (xs, ys)
assert x == half[:len(x)] and y == half[1:len(y) + 1], (x[:50], y[:50])
open("after.safetensors", "wb").write(open("base.safetensors", "rb").read())
json.dump({"examples": xs[0], "steps": 1, "loss": 1}, open("report.json", "w"))
END
python3 -S -E - "$FLEET" <<'END'
import json, random, struct, sys
top = sys.argv[1]
random.seed(2)
open(top + "/play.txt", "w").write("".join(random.choice("to be or not,\n") for _ in range(5001)))
head = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
head += b" " * (-len(head) % 8)
open(top + "/init.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + struct.pack("<2f", 1, 2))
END
init=$(sha256sum <"$FLEET/init.safetensors" | cut -c 1-64)
cat >"$FLEET/text.conf" <<END
[data play]
format = text
path = $FLEET/play.txt
shard = 2/2
[trainer reader]
exec = $(command -v python3) $FLEET/reader.py
read = $FLEET
END
cat >"$FLEET/text.json" <<END
{"name": "text", "seed": 1, "trainer": "reader", "model": {"init": "$init"}, "data": {"name": "play", "window": 32},
 "local": {"steps": 1}, "round": {"goal": 1, "deadline_s": 60}, "stop": {"rounds": 1}}
END
run 0 "$RIVULET" train "$FLEET/text.json" --config "$FLEET/text.conf" --home "$FLEET/none" --init "$FLEET/init.safetensors"
has 'examples 78'
sed 's/"window": 32/"window": 3000/' "$FLEET/text.json" >"$FLEET/long.json"
run 6 "$RIVULET" train "$FLEET/long.json" --config "$FLEET/text.conf" --home "$FLEET/none" --init "$FLEET/init.safetensors"
has 'no text of more than the 3000 tokens'
# First weights that nobody can train, as a coordinator refuses them.
head -c -4 "$FLEET/init.safetensors" >"$FLEET/sick.safetensors"
printf '\000\000\300\177' >>"$FLEET/sick.safetensors"
run 6 "$RIVULET" train "$FLEET/text.json" --config "$FLEET/text.conf" --home "$FLEET/none" --init "$FLEET/sick.safetensors"
has 'holds NaN or infinity, and is to be trained'
echo "ok: $CHECKS checks"
