# arbe. Files are taken by wildcard: a new .c needs no line here. docs/HACKING.md tells what each target proves.
#   V=1 shows commands   B=dir builds elsewhere   WERROR=1 makes warnings errors   CC=clang, OPT=-O0, SAN=address as wished
B      ?= build
OPT    ?= -O2
SYMBOLS ?= -g
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
SAN    ?=
COV    ?=
WERROR ?=
FUZZ_SECONDS ?= 60
# A sanitizer wants every path, not every seed.
SIM_SEEDS    ?= $(if $(SAN),60,300)
NODE   ?= tools/node
ifeq ($(origin CC),default)
CC := gcc
endif
Q := $(if $(V),,@)
# A line of progress where the command itself stays hidden; none with make -s.
SAY := $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),@:,@printf '  %-7s %s\n')

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
        -Wcast-align -Wimplicit-fallthrough -Wundef $(if $(WERROR),-Werror)
WARN += $(if $(findstring clang,$(CC)),-Wno-gnu-variable-sized-type-not-at-end -Wno-unknown-warning-option)
# gcc's flow warnings guess wrongly once a sanitizer has rewritten the flow; the plain build keeps them.
WARN += $(if $(SAN),-Wno-maybe-uninitialized -Wno-stringop-overflow)
HARD := $(if $(SAN)$(COV)$(filter -O0,$(OPT)),,-D_FORTIFY_SOURCE=2 -fstack-protector-strong)
SANF := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CFLAGS = -std=gnu11 $(OPT) $(SYMBOLS) -D_GNU_SOURCE -Isrc -Iinclude -Itests -fPIC -pthread $(HARD) $(SANF) \
             $(if $(COV),--coverage) $(WARN) $(CFLAGS)
ALL_LDFLAGS = -pthread $(SANF) $(if $(COV),--coverage) -Wl,-z,relro,-z,now $(LDFLAGS)
LDLIBS += -llmdb -lpthread
ifneq ($(shell grep -rlsE '^\#include <openssl/' src | head -n 1),)
LDLIBS += -lcrypto
endif
ifneq ($(shell grep -rlsE '^\#include <libwebsockets' src | head -n 1),)
LDLIBS += -lwebsockets -lssl
endif
ifneq ($(shell grep -rlsE '^\#include <curl/' src | head -n 1),)
LDLIBS += -lcurl
endif
ifneq ($(shell grep -rlsE '^\#include <sqlite3' src | head -n 1),)
LDLIBS += -lsqlite3 -lm
endif
ifneq ($(shell grep -rlsE '^\#include <jwt.h>' src | head -n 1),)
LDLIBS += -ljwt
endif
ifneq ($(shell grep -rlsE '^\#include <utf8proc.h>' src | head -n 1),)
LDLIBS += -lutf8proc
endif
# What the library wants of others; tools/install/arbe.pc says the same.
LIBLIBS := -lcurl -lutf8proc -lwebsockets -lssl -lcrypto

SRC   := $(sort $(wildcard src/*/*.c src/*/*/*.c))
OBJ   := $(SRC:%.c=$(B)/obj/%.o)
CORE  := $(filter-out $(B)/obj/src/cli/main.o,$(OBJ))
UNIT  := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/unit/*/*_test.c)))
SIM   := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/sim/*_sim.c)))
CLIENTS := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/client/*.c)))
FUZZ  := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/fuzz/*_fuzz.c)))
REPLAY := $(FUZZ:%_fuzz=%_replay)
HELP  = $(patsubst %.c,$(B)/obj/%.o,$(sort $(wildcard tests/$(1)/lib*.c)))
# The library exists once a client does: until then include/arbe promises nothing.
LIBS  := $(if $(wildcard src/client/*.c),$(B)/libarbe.so $(B)/libarbe.a)
LIBOBJ = $(filter $(B)/obj/src/base/% $(B)/obj/src/client/% $(B)/obj/src/t3/%,$(OBJ))
LIBMAP := src/client/libarbe.map
PROG  := $(if $(wildcard src/cli/main.c),$(B)/arbe)

.PHONY: all tests replays unit sim clients check test asan ubsan tsan fuzz fuzz-bins sim-night lint format cov bench install clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:
all: $(PROG) $(LIBS)

MAKEFLAGS += --no-print-directory

# Every object depends on this file, which is written only when the compiler or a flag has changed: make -q must tell.
ifneq ($(strip $(file <$(B)/flags)),$(strip $(CC) $(ALL_CFLAGS)))
$(B)/flags: FORCE
endif
$(B)/flags:
	@mkdir -p $(@D); echo '$(CC) $(ALL_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS)' >$@

$(B)/obj/%.o: %.c $(B)/flags
	$(SAY) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/arbe: $(OBJ)
	$(SAY) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

# Tests link an archive, not the objects: a test that includes the .c it tests then keeps its own copy of it.
$(B)/core.a: $(CORE)
	@rm -f $@; mkdir -p $(@D)
	$(Q)ar rcs $@ $^

# One object, in which only the names of the map are to be seen.
$(B)/libarbe.a: $(LIBOBJ) $(LIBMAP)
	@rm -f $@
	$(Q)$(LD) -r -o $(B)/libarbe.o $(LIBOBJ)
	@sed -n 's/^ *\([a-z0-9_]*\);$$/\1/p' $(LIBMAP) >$(B)/libarbe.names
	$(Q)objcopy --keep-global-symbols=$(B)/libarbe.names $(B)/libarbe.o
	$(Q)ar rcs $@ $(B)/libarbe.o
$(B)/libarbe.so.0: $(LIBOBJ) $(LIBMAP)
	$(SAY) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libarbe.so.0 -Wl,--version-script=$(LIBMAP) $(if $(SAN),,-Wl,-z,defs) \
	    -o $@ $(LIBOBJ) $(LIBLIBS)
$(B)/libarbe.so: $(B)/libarbe.so.0
	@ln -sf $(<F) $@

define test_program # kind, suffix, extra objects, extra flags and libraries
$(B)/tests/$(1)/%$(2): $(B)/obj/tests/$(1)/%$(3) $(4) $(B)/core.a
	$$(SAY) LINK $$@
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_LDFLAGS) $(5) -o $$@ $$(filter-out %.a,$$^) $(B)/core.a $(6) $$(LDLIBS)
endef
$(eval $(call test_program,unit,_test,_test.o,$(call HELP,unit) $(filter %/libfakedisk.o %/libfakefile.o,$(call HELP,sim)),,-lcmocka -lssl))
# Memory runs out in simulations: tests/sim/alloc.h.
WRAP := -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
$(eval $(call test_program,sim,_sim,_sim.o,$(call HELP,sim),$(WRAP),-lcmocka))
$(eval $(call test_program,fuzz,_replay,_fuzz.o,$(B)/obj/tests/fuzz/replay_main.o $(call HELP,fuzz)))
$(eval $(call test_program,fuzz,_fuzz,_fuzz.o,$(call HELP,fuzz),-fsanitize=fuzzer))

# Programs that use the library as anybody would: through its headers and what libarbe.a shows.
$(B)/tests/client/%: $(B)/obj/tests/client/%.o $(B)/libarbe.a
	$(SAY) LINK $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBLIBS) -lm

# Speaks to drivers of the public client suite. It reads JSON with our own base; of streams it knows the library alone.
ADAPTER := $(patsubst %.c,$(B)/obj/%.o,$(sort $(wildcard tests/client/adapter/*.c)))
$(B)/client-adapter: $(ADAPTER) $(filter $(B)/obj/src/base/%,$(OBJ)) $(B)/libarbe.a
	$(SAY) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBLIBS) -lm

unit: $(UNIT)
clients: $(CLIENTS) $(B)/client-adapter
sim: $(SIM)
replays: $(REPLAY)
fuzz-bins: $(FUZZ)
tests: all unit sim clients $(if $(SAN),replays)
	$(if $(SAN)$(NO_REPLAY),,+$(Q)$(MAKE) B=$(B)/asan SAN=address CC=gcc replays)

RUN = $(NODE) tools/run-tests --build $(B) --replays $(if $(SAN),$(B),$(B)/asan) --seeds $(SIM_SEEDS) --san "$(SAN)" $(RUN_ARGS)
check: tests
	@$(RUN) --lint
test: tests
	@$(RUN)

asan:
	+@$(MAKE) B=$(B)/asan SAN=address CC=gcc test
ubsan:
	+@$(MAKE) B=$(B)/ubsan SAN=undefined CC=gcc test
# clang: gcc's thread sanitizer does not know fences.
tsan:
	+@$(MAKE) B=$(B)/tsan SAN=thread CC=clang test

fuzz:
	+@$(MAKE) B=$(B)/fuzz CC=clang SAN=address,undefined,fuzzer-no-link OPT=-O1 fuzz-bins
	@tools/fuzz $(B)/fuzz $(FUZZ_SECONDS)

sim-night: sim
	@$(NODE) tools/run-tests --build $(B) --only sim --seeds 20000 --limit 14400

lint:
	@$(NODE) tools/lint
format:
	$(Q)clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h')

cov:
	+@$(MAKE) B=$(B)/cov OPT=-O0 COV=1 NO_REPLAY=1 tests
	@$(NODE) tools/run-tests --build $(B)/cov --only unit,sim,e2e
	@gcovr -r . --object-directory $(B)/cov -f 'src/' --gcov-ignore-parse-errors --sort-percentage

# What of us a program of bench/ measures in one process: build/bench/post DIR.
$(B)/bench/%: $(B)/obj/bench/%.o $(B)/core.a
	$(SAY) LINK $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

bench: all
	@ARBE_BIN=$(abspath $(B))/arbe bench/run $(BENCH_ARGS)

# Where a distribution's own package would use PREFIX=/usr.
SHARE = $(DESTDIR)$(PREFIX)/share
VERSION = $(shell sed -n 's/^.define ARBE_VERSION "\(.*\)"/\1/p' src/*/version.h)
install: all
	install -D -m 755 $(B)/arbe $(DESTDIR)$(PREFIX)/bin/arbe
	install -d $(SHARE)/man/man1
	install -m 644 docs/man/*.1 $(SHARE)/man/man1
	install -D -m 644 tools/install/arbe.bash $(SHARE)/bash-completion/completions/arbe
	install -D -m 644 tools/install/_arbe $(SHARE)/zsh/site-functions/_arbe
	install -D -m 644 tools/install/arbe.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/arbe.conf
	install -D -m 644 tools/install/arbe.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/arbe.conf
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	for unit in arbe.service arbe-streams.service; do \
	    sed 's|@PREFIX@|$(PREFIX)|' tools/install/$$unit >$(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit && \
	    chmod 644 $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit || exit 1; done
	for conf in serve.conf streams.conf; do [ -e $(DESTDIR)$(SYSCONFDIR)/arbe/$$conf ] || \
	    install -D -m 644 tools/install/$$conf $(DESTDIR)$(SYSCONFDIR)/arbe/$$conf || exit 1; done
	$(if $(LIBS),install -d $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include/arbe)
	$(if $(LIBS),install -m 644 $(B)/libarbe.so.0 $(B)/libarbe.a $(DESTDIR)$(PREFIX)/lib)
	$(if $(LIBS),ln -sf libarbe.so.0 $(DESTDIR)$(PREFIX)/lib/libarbe.so)
	$(if $(LIBS),install -m 644 include/arbe/*.h $(DESTDIR)$(PREFIX)/include/arbe)
	install -d $(SHARE)/man/man3 $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 docs/man/*.3 $(SHARE)/man/man3
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' tools/install/arbe.pc >$(DESTDIR)$(PREFIX)/lib/pkgconfig/arbe.pc
	chmod 644 $(DESTDIR)$(PREFIX)/lib/pkgconfig/arbe.pc

clean:
	rm -rf $(B)

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
