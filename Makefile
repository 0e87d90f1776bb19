# Rivulet: plain GNU make, no configure step.
#   make demo | check | wheel | python | man | lint | bench | fuzz | hostile | start-cost | torture | large | cross | repro-fedavg | repro-attacks | repro-codecs | repro-asynchronous | repro-learning | repro-boards | repro-sizing | packages | packages-cross | image | package-test | package-test-cross | install | uninstall | clean      V=1 shows the commands
#   CC=clang  CRYPTO=mbedtls|openssl  SAN=address,undefined|thread  WERROR=1  FAULTS=1  PREFIX=/usr/local  LIBDIR=  UNITDIR=  MANDIR=  DESTDIR=
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
CRYPTO  ?= mbedtls
# The release; which build of it base/core/version says.
VERSION := $(shell sed -n 's/^.define VERSION_RELEASE "\(.*\)"/\1/p' base/core/version.h)
comma   := ,
BUILD   ?= build/$(CRYPTO)$(if $(filter clang%,$(CC)),-clang)$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(FAULTS),-faults)

# getconf: files of more than 2 GiB, and inodes beyond 32 bits, where a long has 32.
STD  := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -ffp-contract=off -fno-math-errno -pthread \
        $(if $(FAULTS),-DRIVULET_FAULTS)
HARD := -fPIC -fno-semantic-interposition -fvisibility=hidden -ffunction-sections -fdata-sections
# Those of these that the compiler takes without a word are used, the last of a kind; a comma joins words that go together.
PROBED := -fstack-protector-strong -fstack-clash-protection -fcf-protection -mbranch-protection=standard \
        $(if $(SAN),,$(foreach n,2 3,-U_FORTIFY_SOURCE$(comma)-D_FORTIFY_SOURCE=$n))
WARN := -Wall -Wextra -Wshadow -Wconversion -Wvla -Wpointer-arith -Wwrite-strings -Wstrict-prototypes \
        -Wmissing-prototypes -Wformat=2 -Wundef -Werror=implicit-function-declaration $(if $(WERROR),-Werror)
SANF := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
LINK := -fPIE -pie -Wl,-z,relro,-z,now -Wl,--as-needed

ifneq ($(CRYPTO),mbedtls)
ifneq ($(CRYPTO),openssl)
$(error CRYPTO is "$(CRYPTO)"; it may be mbedtls or openssl)
endif
endif
Q := $(if $(V),,@)

include rooms.mk

# --- Third-party libraries.  Looked up once, when first used: `deps` must be able to run before.
PKG_CONFIG ?= pkg-config
pc = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null || echo $(2))
LIBS_CRYPTO = $(eval LIBS_CRYPTO := $(call pc,mbedtls mbedx509 mbedcrypto,-lmbedtls -lmbedx509 -lmbedcrypto) \
	$(if $(filter openssl,$(CRYPTO)),$(call pc,openssl,-lssl -lcrypto)))$(LIBS_CRYPTO)
LIBS_WIRE   = $(eval LIBS_WIRE := $(call pc,libcjson,-lcjson))$(LIBS_WIRE)
LIBS_DATA   = $(eval LIBS_DATA := $(call pc,zlib,-lz))$(LIBS_DATA)
LIBS_IMAGE  = $(eval LIBS_IMAGE := $(call pc,libpng libjpeg,-lpng -ljpeg))$(LIBS_IMAGE)
LIBS_BLAS   = $(eval LIBS_BLAS := $(call pc,openblas,-lopenblas))$(LIBS_BLAS)
LIBS_CURL   = $(eval LIBS_CURL := $(call pc,libcurl,-lcurl))$(LIBS_CURL)
LIBS_SANDBOX = $(eval LIBS_SANDBOX := $(call pc,libseccomp,-lseccomp))$(LIBS_SANDBOX)
LIBS_MPI    = $(eval LIBS_MPI := $(call pc,ompi-c,-lmpi))$(LIBS_MPI)
# Only sites need MPI: where its header is not, they are left out.
MPI         := $(wildcard $(addsuffix /mpi.h,$(patsubst -I%,%,$(filter -I%,$(shell $(PKG_CONFIG) --cflags ompi-c 2>/dev/null)))))
LIBS_DAEMON = $(eval LIBS_DAEMON := $(call pc,sqlite3,-lsqlite3))$(LIBS_DAEMON)
LIBS_ALL    = $(LIBS_DAEMON) $(LIBS_SANDBOX) $(LIBS_CURL) $(LIBS_BLAS) $(LIBS_IMAGE) $(LIBS_DATA) $(LIBS_CRYPTO) $(LIBS_WIRE) -lm -lpthread

DEPS     := gcc libc6-dev pkg-config libmbedtls-dev libssl-dev libcurl4-openssl-dev libcjson-dev libopenblas-dev \
            libsqlite3-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libseccomp-dev libcmocka-dev curl openssl python3 python3-numpy \
            python3-yaml python3-jsonschema iproute2 procps sslscan faketime
DEPS_DEV := ccache clang clang-format clang-tidy cppcheck libclang-rt-dev lld llvm systemd valgrind git nginx-light openmpi-bin libopenmpi-dev python3-mpi4py python3-venv \
            scdoc mandoc zsh prometheus jq
# What older versions need, which .ci/run builds.
DEPS_DEV += libhttp-parser-dev libinih-dev

.PHONY: all check unit e2e replay demo lint bench fuzz torture install clean deps deps-dev
all: $(BUILD)/rivuletd $(BUILD)/rivulet $(BUILD)/librivulet.a $(BUILD)/librivulet.so examples site

# crypto/ has two back ends side by side: foo_mbedtls.c, foo_openssl.c; all else in it serves both.
other := $(if $(filter openssl,$(CRYPTO)),%_mbedtls.c,%_openssl.c) $(if $(MPI),,%/link_mpi.c)
objs = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/main.c $(other),$(wildcard $(1)/*.c)))
archive = $(BUILD)/librv_$(subst /,_,$(1)).a
$(foreach d,$(HOUSES),$(foreach r,$(call rooms,$d),$(eval $(call archive,$r): $(call objs,$r))))
$(BUILD)/librv_%.a:
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# What the objects of one directory have in common. It remembers that, and refuses to hold others.
MADE   := $(strip CC=$(CC) CRYPTO=$(CRYPTO) $(if $(SAN),SAN=$(SAN)) $(if $(FAULTS),FAULTS=1))
BEFORE := $(shell cat $(BUILD)/made 2>/dev/null)
# Looked for once: without the packages the first of a hundred compiler errors would be all there is to go by.
HEADERS := mbedtls/ssl.h curl/curl.h cjson/cJSON.h cblas.h sqlite3.h zlib.h png.h jpeglib.h seccomp.h $(if $(filter openssl,$(CRYPTO)),openssl/ssl.h)
ifneq ($(filter-out $(MADE),$(BEFORE))$(filter-out $(BEFORE),$(if $(BEFORE),$(MADE))),)
$(BUILD)/made: FORCE
	@echo 'make: $(BUILD) was made with $(BEFORE), and this is $(MADE),' \
	    'whose objects do not mix: give the same words, or another directory (BUILD=), or remove this one' >&2; exit 1
else
$(BUILD)/made:
	@mkdir -p $(@D)
	$(Q)printf '#include <%s>\n' stdio.h $(HEADERS) | $(CC) $(CPPFLAGS) $(CFLAGS) -E -x c - >/dev/null 2>$@.why || { grep error: $@.why >&2; \
	    echo "make: packages are missing; as root, \"make deps\" installs them" >&2; exit 1; }
	@echo '$(MADE)' >$@.why && mv $@.why $@
endif

# Once per build, too: each flag compiles a header, and what passed is given to the compiler as a file of arguments.
$(BUILD)/hardening: Makefile | $(BUILD)/made
	@mkdir -p $(@D)
	$(Q)for f in $(PROBED); do f=$$(echo "$$f" | tr , ' '); echo '#include <stdio.h>' | \
	    $(CC) $(CPPFLAGS) $(CFLAGS) -Werror $$f -x c -c - -o $@.o 2>/dev/null && echo "$$f"; done >$@.new; rm -f $@.o; mv $@.new $@

$(BUILD)/%.o: %.c Makefile rooms.mk | $(BUILD)/made $(BUILD)/hardening
	@mkdir -p $(@D)
	$(if $(V),,@echo "CC    $<")
	$(Q)$(CC) $(STD) $(CPPFLAGS) $(HARD) @$(BUILD)/hardening $(WARN) $(SANF) $(CFLAGS) $(EXTRA) $(call inc,$(patsubst %/,%,$(dir $<))) -MMD -MP -c $< -o $@

# Numeric kernels are the one place where -O3 pays: gcc's -O2 leaves most loops over arrays alone, and with traps so do loops with choices
# (nobody asks which exceptions floating point raised). With sanitizers it does not: they forbid most of what it would do.
$(BUILD)/model/%.o $(BUILD)/aggregator/%.o $(BUILD)/wire/codec/%.o $(BUILD)/tests/tools/bench_fold.o: EXTRA := $(if $(SAN),,-O3) -fno-trapping-math

# One object knows which build this is, and is made again when that has changed. A package, whose sources have no commits, says VERSION_BUILD=.
$(BUILD)/version: FORCE | $(BUILD)/made
	@mkdir -p $(@D)
	@if [ -n "$(VERSION_BUILD)" ]; then echo "$(VERSION_BUILD)"; else base/core/version $(VERSION); fi >$@.new; if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/base/core/version.o: $(BUILD)/version
$(BUILD)/base/core/version.o: EXTRA = -DVERSION_BUILD="\"$$(cat $(BUILD)/version)\""
.PHONY: FORCE

# Archives in link order: users before the used.
stack = $(foreach d,$(1),$(foreach r,$(call reverse,$(call rooms,$d)),$(call archive,$r)))
link  = $(if $(V),,@echo "LINK  $@";) $(CC) $(SANF) $(LINK) $(LDFLAGS) $(1) -o $@
$(BUILD)/rivuletd: $(BUILD)/daemon/program/main.o $(call stack,daemon round aggregator model data/files wire crypto base)
	$(call link,$^ $(LIBS_DAEMON) $(LIBS_BLAS) $(LIBS_DATA) $(LIBS_CRYPTO) $(LIBS_WIRE) -lm -lpthread)
$(BUILD)/rivulet: $(BUILD)/command/main.o $(call stack,command lab client round aggregator training model data wire crypto base)
	$(call link,$^ $(LIBS_SANDBOX) $(LIBS_CURL) $(LIBS_BLAS) $(LIBS_IMAGE) $(LIBS_DATA) $(LIBS_CRYPTO) $(LIBS_WIRE) -lm -lpthread)
# Not of `all`'s words where MPI is missing.
SITE := $(if $(MPI),$(BUILD)/rivulet-site,no-site)
$(BUILD)/site/link/link_mpi.o: EXTRA := $(addprefix -isystem ,$(patsubst %/mpi.h,%,$(MPI)))
$(BUILD)/rivulet-site: $(BUILD)/site/program/main.o $(call stack,site) $(call archive,lab/presets) $(call stack,training model data wire crypto base)
	$(call link,$^ $(LIBS_MPI) $(LIBS_BLAS) $(LIBS_DATA) $(LIBS_CRYPTO) $(LIBS_WIRE) -lm -lpthread)
no-site:
	@echo "make: rivulet-site is left out, for mpi.h is not here (make deps-dev installs it)"
site: $(SITE)
.PHONY: site no-site

# librivulet and what lies below. "q": two rooms may have files of one name.
LIBS_DEVICE = $(LIBS_SANDBOX) $(LIBS_CURL) $(LIBS_CRYPTO) $(LIBS_WIRE) -lm -lpthread
$(BUILD)/librivulet.a: $(foreach d,$(DEVICE) wire crypto base,$(foreach r,$(call rooms,$d),$(call objs,$r)))
	$(Q)rm -f $@ && $(AR) qcs $@ $^
# The same as a shared library, without what no device calls. Its number changes when a program built for an older one would no longer work with it.
SONAME := librivulet.so.1
MAP    := client/device/librivulet.map
$(BUILD)/$(SONAME): $(BUILD)/librivulet.a $(MAP)
	$(if $(V),,@echo "LINK  $@";) $(CC) $(SANF) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=$(MAP) $(if $(SAN),,-Wl,-z,defs -Wl,--gc-sections) \
	    -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS) -Wl,--whole-archive $< -Wl,--no-whole-archive $(LIBS_DEVICE) -o $@
$(BUILD)/librivulet.so: $(BUILD)/$(SONAME)
	$(Q)ln -sf $(SONAME) $@
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))
examples: $(EXAMPLES)
$(EXAMPLES): %: %.o $(BUILD)/librivulet.a
	$(call link,$^ $(LIBS_DEVICE))
.PHONY: examples

# --- Tests: each tests/unit/test_x.c is one program; exit 0 = pass, 77 = skip.  tests/tools are helpers.
everything = $(call stack,$(or $(STACK),daemon command site lab client round aggregator training model data wire crypto base))
TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
TOOLS := $(patsubst tests/tools/%.c,$(BUILD)/tests/tools/%,$(wildcard tests/tools/*.c))
FUZZ  := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
E2E_ALL := $(sort $(wildcard tests/e2e/[0-9]*.sh))
E2E   := $(E2E_ALL)
PYTHON_TESTS := $(sort $(wildcard tests/python/test_*.py))
$(TESTS): %: %.o $(everything)
	$(call link,$^ -lcmocka $(LIBS_ALL))
$(TOOLS): %: %.o $(everything)
	$(call link,$(filter %.o,$^) $(filter %.a,$^) $(if $(MPI),$(if $(filter %/site_cases,$@),$(LIBS_MPI))) $(LIBS_ALL))
$(BUILD)/tests/tools/site_cases.o: EXTRA := $(if $(MPI),-DSITE_MPI)
# Libraries for LD_PRELOAD: without sanitizers, for they come before everything else.
SHIMS := $(patsubst tests/shim/%.c,$(BUILD)/tests/shim/%.so,$(wildcard tests/shim/*.c))
$(SHIMS): $(BUILD)/%.so: %.c Makefile | $(BUILD)/made
	@mkdir -p $(@D)
	$(if $(V),,@echo "LINK  $@";) $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra $(if $(WERROR),-Werror) -fPIC -shared $< -o $@ -ldl
# `check` replays each fuzz corpus through the same parser that `fuzz` feeds.
$(FUZZ): %: %.o $(BUILD)/tests/fuzz/replay.o $(everything)
	$(call link,$^ $(LIBS_ALL))

# What libcurl calls is the test's own there.
$(BUILD)/tests/unit/test_transport: LDFLAGS += -Wl,--export-dynamic-symbol=getaddrinfo

run = BUILD=$(BUILD) SAN=$(SAN) CRYPTO=$(CRYPTO) CC="$(CC)" tests/run
check: deps
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) built
	$(Q)$(run) $(TESTS) $(addprefix replay:,$(FUZZ)) $(PYTHON_TESTS) $(E2E) answers:$(if $(filter-out $(E2E),$(E2E_ALL)),,all)
.PHONY: built
built: all $(TESTS) $(TOOLS) $(SHIMS) $(FUZZ)
unit: $(TESTS)
	$(Q)$(run) $(TESTS)
e2e: all $(TOOLS) $(SHIMS)
	$(Q)$(run) $(E2E) answers:
replay: $(FUZZ)
	$(Q)$(run) $(addprefix replay:,$(FUZZ))
PARALLEL = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

demo: deps
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) all
	$(Q)BUILD=$(BUILD) tests/demo

# BENCH=train|fast|fold|round|lock for a part of it; PYTHON=INTERPRETER that has PyTorch or flwr, to compare with. Both back ends are built: the
# load always comes from the OpenSSL build.
bench: deps
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) CRYPTO=mbedtls BUILD=build/mbedtls all tools
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) CRYPTO=openssl BUILD=build/openssl all tools
	$(Q)tests/bench $(BENCH)
tools: $(TOOLS) $(SHIMS)
.PHONY: tools shims
shims: $(SHIMS)

# What of the manual pages comes from the programs' tables and from docs/; lint compares.
man: all
	$(Q)man/generate $(BUILD)
.PHONY: man

# The Python package as a file for pip; needs nothing but python3. PLATFORM=1: with the library and what it links, made in a bare Debian 12.
# wheel-test: that one in bare Debians, with a coordinator of this build.
wheel:
	$(Q)$(if $(PLATFORM),CRYPTO=$(CRYPTO) python/platform_wheel,python3 python/wheel.py) $$(base/core/version $(VERSION)) dist
wheel-test: $(BUILD)/rivuletd $(BUILD)/rivulet
	$(Q)BUILD=$(BUILD) CRYPTO=$(CRYPTO) tests/wheel $$(base/core/version $(VERSION))
.PHONY: wheel wheel-test

# Packages for Debian 12 and 13 in dist/, each built in a clean root of that release; for arm64 and armhf; a coordinator as a root file
# system for containers. SUITES=bookworm for one of them. CRYPTO=mbedtls builds rivuletd with mbedTLS instead of OpenSSL, too.
# PROFILES=pkg.rivulet.nosite leaves out rivulet-site.
SUITES  ?= bookworm trixie
FOREIGN ?= bookworm:arm64 trixie:arm64 bookworm:armhf
packages:
	$(Q)tests/deps mmdebstrap dpkg-dev
	$(Q)PROFILES="$(strip $(PROFILES) $(if $(filter command,$(origin CRYPTO)),$(filter pkg.rivulet.mbedtls,pkg.rivulet.$(CRYPTO))))" debian/build-packages dist $(SUITES)
packages-cross:
	$(Q)tests/deps mmdebstrap dpkg-dev
	$(Q)debian/build-packages dist $(FOREIGN)
image:
	$(Q)tests/deps mmdebstrap dpkg-dev
	$(Q)debian/build-image dist $(lastword $(SUITES))
# All of tests/package: an hour on two cores. PARTS="build install" for some.
PARTS ?= build install upgrade image boot repro
package-test:
	$(Q)tests/deps mmdebstrap dpkg-dev blhc qemu-system-x86 e2fsprogs
	$(Q)set -e; for s in $(SUITES); do for p in $(PARTS); do tests/package/$$p $$s; done; done
package-test-cross:
	$(Q)tests/deps mmdebstrap dpkg-dev qemu-user-static file
	$(Q)tests/package/cross $(FOREIGN)
.PHONY: packages packages-cross image package-test package-test-cross

# What needs PyTorch, Flower and other packages of PyPI, in an environment of its own that is kept, see tests/python/pypi/run.
python: deps deps-dev
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) all
	$(Q)BUILD=$(BUILD) FULL=$(FULL) tests/python/pypi/run
.PHONY: python

# Published experiments, by rivulet simulate; what was run is kept in build/repro. ROWS=PART,... FULL=1 KEEP=1 THREADS=N, see
# tests/repro/README.md.
repro-fedavg repro-attacks repro-codecs repro-asynchronous repro-learning repro-boards repro-sizing: repro-%: deps
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) $(BUILD)/rivulet $(BUILD)/tests/tools/fold_rule
	$(Q)BUILD=$(BUILD) ROWS="$(ROWS)" FULL=$(FULL) KEEP=$(KEEP) $(if $(THREADS),THREADS=$(THREADS)) python3 tests/repro/repro.py $*
.PHONY: repro-fedavg repro-attacks repro-codecs repro-asynchronous repro-learning repro-boards repro-sizing

# GPT-2 of 124 million parameters by four ranks of at most 1 GiB, and by one process: minutes.
large: all
	$(Q)BUILD=$(BUILD) tests/large_site
.PHONY: large

# Other architectures (ARCH="arm64 armhf") under qemu: unit tests, and models equal to this machine's, see tests/cross.
cross: deps
	$(Q)BUILD=$(BUILD) tests/cross $(ARCH)
.PHONY: cross

# Thousands of jobs that are meant to cost much, and a start with them; make check does it with few.
JOBS ?= 4000
start-cost: deps $(BUILD)/tests/unit/test_start_cost
	$(Q)JOBS=$(JOBS) $(BUILD)/tests/unit/test_start_cost
.PHONY: start-cost

# Attacks on a coordinator whose honest devices do rounds. The load comes from the OpenSSL build. PRIORITIES=no, see tests/hostile.
hostile: deps
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) all tools
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) CRYPTO=openssl BUILD=build/openssl build/openssl/tests/tools/attacker
	$(Q)BUILD=$(BUILD) LOAD=build/openssl SECONDS_ALL=$(SECONDS) PRIORITIES=$(PRIORITIES) tests/hostile
.PHONY: hostile

# Kills everything hundreds of times, see tests/torture. SEED=N repeats the choices of a run.
SECONDS ?= 120
torture: deps
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) FAULTS=1 BUILD=build/faults all shims build/faults/tests/tools/toy_trainer
	$(Q)BUILD=build/faults tests/torture --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# libFuzzer over every parser, FUZZ_SECONDS each; new finds land in build/fuzz/corpus.
FUZZ_SECONDS ?= 30
fuzz: deps-dev
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) CC=clang SAN=fuzzer-no-link,address,undefined BUILD=build/fuzz fuzzers
	$(Q)BUILD=build/fuzz SECONDS_EACH=$(FUZZ_SECONDS) tests/fuzz/run
.PHONY: fuzzers
fuzzers: $(addsuffix .lf,$(FUZZ))
$(addsuffix .lf,$(FUZZ)): %.lf: %.o $(everything)
	$(if $(V),,@echo "LINK  $@";) $(CC) -fsanitize=fuzzer,address,undefined $^ $(LIBS_ALL) -o $@

# The lines of each parser that the kept corpus reaches.
fuzz-coverage: deps-dev
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) CC=clang BUILD=build/coverage LDFLAGS="-fprofile-instr-generate" \
	    CFLAGS="-O1 -g -fprofile-instr-generate -fcoverage-mapping" replayers
	$(Q)BUILD=build/coverage tests/fuzz/coverage
replayers: $(FUZZ)
.PHONY: fuzz-coverage replayers

# --- Lint: see tests/lint, which reads rooms.mk by `make print-rooms`: a room, the folders it sees.
.PHONY: print-rooms print-arrows
print-rooms:
	@$(foreach d,$(HOUSES) examples,$(foreach r,$(call rooms,$d),echo '$r: $(call sees,$r)';))
# The arrows as they stand in rooms.mk.
print-arrows:
	@$(foreach h,$(HOUSES) examples,\
	    $(foreach u,$(USES_$h),echo '$h $u';) \
	    $(foreach r,$(call rooms,$h),$(if $(findstring /,$r),$(foreach u,$(USES_$r),echo '$r $(call used,$r,$u)';)) $(foreach u,$(SEES_$r),echo '$r $u';)))
lint: deps deps-dev
	+$(Q)$(MAKE) --no-print-directory $(PARALLEL) all $(BUILD)/tests/tools/routes_print
	$(Q)CC="$(CC)" tests/lint $(BUILD)

deps:
	$(Q)tests/deps $(DEPS)
deps-dev: deps
	$(Q)tests/deps $(DEPS_DEV)

# In the places they have here, so that the links among them lead somewhere.
DOCUMENTS := README.md LICENSE CHANGELOG.md CONTRIBUTING.md $(wildcard docs/*.md docs/*.svg docs/*.yaml examples/*) wire/FORMAT.md model/ARITHMETIC.md systemd/README.md client/README.md lab/README.md command/README.md daemon/README.md \
             site/README.md site/plan/README.md site/schedule/README.md client/device/rivulet.h
DOCDIR     := $(PREFIX)/share/doc/rivulet
# Alerts and a board, for whoever watches a coordinator.
WATCHING   := prometheus/rivulet.rules.yml prometheus/rules_test.yml grafana/rivulet.json
WATCHDIR   := $(PREFIX)/share/doc/rivuletd
LIBDIR     ?= $(PREFIX)/lib
# systemd, sysusers and tmpfiles read these below /usr and /usr/local alone.
UNITDIR    ?= $(PREFIX)/lib/systemd/system
INCLUDEDIR := $(PREFIX)/include
SHAREDIR   := $(PREFIX)/share/rivulet
# What runs as a service, and has users and directories of its own; all programs; those of them that are built here.
SERVICES   := rivuletd rivulet
PROGRAMS   := $(SERVICES) rivulet-site
BUILT      := $(SERVICES) $(if $(MPI),rivulet-site)
UNITS      := $(SERVICES:%=%.service)
MANDIR     ?= $(PREFIX)/share/man
BASHDIR    := $(PREFIX)/share/bash-completion/completions
ZSHDIR     := $(PREFIX)/share/zsh/site-functions
PAGES      := $(notdir $(basename $(wildcard man/*.scd)))
BUILT_PAGES := $(filter-out $(patsubst %,%.1,$(filter-out $(BUILT),$(PROGRAMS))),$(PAGES))
page        = $(MANDIR)/man$(patsubst .%,%,$(suffix $(1)))/$(1)
# The date of a page is that of its source, unless SOURCE_DATE_EPOCH says another.
put_page = SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(stat -c %Y man/$(1).scd)} scdoc <man/$(1).scd >$(DESTDIR)$(call page,$(1)) && \
	chmod 644 $(DESTDIR)$(call page,$(1))
install: all
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(LIBDIR)/pkgconfig $(INCLUDEDIR) $(UNITDIR) $(PREFIX)/lib/sysusers.d \
	    $(PREFIX)/lib/tmpfiles.d $(SHAREDIR)) $(addprefix $(DESTDIR)$(DOCDIR)/,$(sort $(dir $(DOCUMENTS))))
	install -m 755 $(addprefix $(BUILD)/,$(BUILT)) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(BUILD)/librivulet.a $(DESTDIR)$(LIBDIR)
	install -m 755 $(BUILD)/$(SONAME) $(DESTDIR)$(LIBDIR)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/librivulet.so
	install -m 644 client/device/rivulet.h $(DESTDIR)$(INCLUDEDIR)
	for u in $(UNITS); do sed 's,/usr/local/bin,$(PREFIX)/bin,' systemd/$$u >$(DESTDIR)$(UNITDIR)/$$u || exit 1; done
	sed 's,/usr/local/bin,$(PREFIX)/bin,' systemd/trainer-user.conf >$(DESTDIR)$(SHAREDIR)/trainer-user.conf
	for k in sysusers tmpfiles; do for p in $(SERVICES); do install -m 644 systemd/$$p.$$k $(DESTDIR)$(PREFIX)/lib/$$k.d/$$p.conf || exit 1; done; done
	sed 's,@PREFIX@,$(PREFIX),;s,@LIBDIR@,$(LIBDIR),;s,@VERSION@,$(VERSION),;s#@LIBS@#$(LIBS_DEVICE)#' \
	    client/device/rivulet.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/rivulet.pc
	install -d $(addprefix $(DESTDIR),$(BASHDIR) $(ZSHDIR))
	for p in $(BUILT); do sed "s/^complete .*/complete -F _rivulet $$p/" completion/rivulet.bash >$(DESTDIR)$(BASHDIR)/$$p && \
	    sed "1s/.*/#compdef $$p/" completion/_rivulet >$(DESTDIR)$(ZSHDIR)/_$$p || exit 1; done
	chmod 644 $(addprefix $(DESTDIR),$(addprefix $(UNITDIR)/,$(UNITS)) $(SHAREDIR)/trainer-user.conf $(LIBDIR)/pkgconfig/rivulet.pc \
	    $(addprefix $(BASHDIR)/,$(BUILT)) $(addprefix $(ZSHDIR)/_,$(BUILT)))
	@command -v scdoc >/dev/null || echo "make: no manual pages are installed, for scdoc is not here"
	@if command -v scdoc >/dev/null; then install -d $(addprefix $(DESTDIR),$(sort $(dir $(foreach p,$(BUILT_PAGES),$(call page,$p))))); \
	    $(foreach p,$(BUILT_PAGES),$(call put_page,$p) &&) :; fi
	for f in $(DOCUMENTS); do install -m 644 $$f $(DESTDIR)$(DOCDIR)/$$f || exit 1; done
	for f in $(WATCHING); do install -D -m 644 contrib/$$f $(DESTDIR)$(WATCHDIR)/$$f || exit 1; done

# What install put there, with the same PREFIX, LIBDIR, UNITDIR and DESTDIR, whichever programs it built; settings, users and state stay.
INSTALLED = $(addprefix $(PREFIX)/bin/,$(PROGRAMS)) $(addprefix $(LIBDIR)/,librivulet.a $(SONAME) librivulet.so pkgconfig/rivulet.pc) \
	$(INCLUDEDIR)/rivulet.h $(addprefix $(UNITDIR)/,$(UNITS)) $(foreach k,sysusers tmpfiles,$(SERVICES:%=$(PREFIX)/lib/$k.d/%.conf)) \
	$(addprefix $(BASHDIR)/,$(PROGRAMS)) $(addprefix $(ZSHDIR)/_,$(PROGRAMS)) $(foreach p,$(PAGES),$(call page,$p))
.PHONY: uninstall
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	rm -rf $(addprefix $(DESTDIR),$(SHAREDIR) $(DOCDIR) $(WATCHDIR))

clean:
	rm -rf build dist

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
