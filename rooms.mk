# The architecture: which house (a folder of the top level) has which rooms, and who sees whom; the Makefile includes it. A folder sees
# its own headers and those of the folders it USES, a room those of the rooms its line names and of its house's folders; nothing else is
# on its include path, so the compiler refuses an arrow that stands in no line. A room may only name rooms that stand before it in
# ROOMS, and archives are linked from the last to the first, so such an arrow does not link either. tests/lint rooms reads this.
# Houses, the used before their users.
HOUSES          := base crypto wire data model training aggregator round client lab site command daemon
USES_base       :=
USES_crypto     := base
USES_wire       := base
USES_data       := base wire
USES_model      := base wire
# A choice of kernels and a file of tensors have hashes.
USES_training   := base crypto/primitives wire model/kernels model/net model/train
USES_aggregator := base wire
# The draw is a hash of what it draws from.
USES_round      := base crypto/primitives wire
ROOMS_round     := policy roster
USES_round/roster := policy
USES_client     := base crypto wire data/files model training
USES_lab        := base crypto wire data/files model training aggregator round
# Of the laboratory the reader of job files.
USES_site       := base wire model/kernels model/layers model/net model/train training lab/presets
# The program `rivulet`: main and the subcommands that are no device's.
USES_command    := base crypto wire model/net model/train training round client lab
USES_daemon     := base crypto wire data/files model aggregator round
USES_examples   := client/device
USES_tests      := $(HOUSES)

ROOMS_base      := core log os sandbox
USES_base/os    := core
USES_base/sandbox := os core

ROOMS_crypto    := primitives x509 tls
USES_crypto/x509 := primitives
USES_crypto/tls  := x509 primitives

ROOMS_wire      := text words model net codec figures job examples onnx message
USES_wire/model   := text
USES_wire/net     := text
USES_wire/figures := text
USES_wire/job     := figures codec net model text
USES_wire/examples := job figures net
USES_wire/onnx    := job figures net model
USES_wire/message := job figures codec net words text

# Pictures become pixels in image: only what packs sets sees that room and its libraries.
ROOMS_data      := files image

ROOMS_model     := kernels layers backend dense spatial norms sequence cpu net train glyphs
USES_model/backend := layers kernels
USES_model/dense   := backend layers kernels
USES_model/spatial := backend layers kernels
USES_model/norms   := backend layers kernels
USES_model/sequence := backend layers kernels
USES_model/cpu     := sequence norms spatial dense backend layers kernels
USES_model/net     := cpu backend layers kernels
USES_model/train   := net layers

ROOMS_aggregator := rules fold
USES_aggregator/fold := rules

ROOMS_daemon    := report runtime config sets store quota models audit age keys registry spool speeds stuck jobs rounds http server claim tasks engine usage metrics fold lookup changes api backup check program
USES_daemon/runtime  := report
USES_daemon/config   := runtime
USES_daemon/sets     := config runtime
USES_daemon/models   := runtime report
USES_daemon/store    := report
USES_daemon/quota    := store config runtime
USES_daemon/audit    := store config runtime
USES_daemon/age      := audit store runtime
USES_daemon/keys     := store config runtime
USES_daemon/registry := keys store config runtime report
USES_daemon/spool    := audit store config runtime report
USES_daemon/speeds    := store
USES_daemon/stuck    := registry store
USES_daemon/http     := models audit registry quota config runtime
USES_daemon/server   := http models registry quota store config runtime report
USES_daemon/claim    := server http registry age audit store config runtime
USES_daemon/jobs     := stuck speeds spool models registry age audit store sets config runtime report
USES_daemon/rounds   := jobs stuck speeds spool models registry quota store runtime report
USES_daemon/tasks    := rounds jobs stuck speeds spool registry age quota store config runtime report
USES_daemon/engine   := rounds jobs stuck speeds spool models registry age audit quota store sets config runtime report
USES_daemon/usage    := engine jobs stuck spool registry store config runtime report
USES_daemon/metrics  := usage engine rounds jobs server http stuck spool models registry age store config runtime report
USES_daemon/fold     := engine tasks rounds jobs stuck spool models registry age audit store sets config runtime report
USES_daemon/lookup   := http engine jobs stuck registry store config runtime
USES_daemon/changes  := http jobs registry config runtime
USES_daemon/api      := changes lookup metrics claim server http usage engine tasks rounds jobs stuck spool models registry keys age audit quota store config runtime report
USES_daemon/backup   := models audit keys store config runtime
USES_daemon/check    := backup spool models keys age audit store config runtime
USES_daemon/program  := check backup api fold usage engine rounds jobs server http stuck spool models registry keys age audit quota store sets config runtime report

# The device: librivulet (below), the agent, and the subcommands of a device.
ROOMS_client    := host home session settings eligibility models outbox work device external agent cli doctor commands
USES_client/session  := home host
USES_client/settings := home
USES_client/eligibility := settings home host
USES_client/work     := outbox models
USES_client/device   := work outbox models eligibility settings session home host
USES_client/external := device work models settings home host
USES_client/agent    := external device work eligibility settings session home host
USES_client/cli      := session home
USES_client/doctor   := cli agent external outbox eligibility settings session home host
USES_client/commands := cli agent device outbox session home host

# The laboratory: what plays, plans, proves and compares. Of the device it sees what its lines name; no room of the device sees it.
ROOMS_lab       := fleet presets curves verify net pack simulate plan study
USES_lab/fleet    := client/agent client/external client/device client/work client/settings client/home client/host
USES_lab/presets  := client/cli
USES_lab/verify   := client/cli client/session client/home
USES_lab/net      := presets client/cli client/agent client/work client/models client/settings client/session client/home
USES_lab/pack     := client/cli client/session client/home
USES_lab/simulate := net verify presets fleet client/cli client/agent client/external client/device client/work client/settings client/home client/host
USES_lab/plan     := simulate net presets fleet client/cli client/agent client/external client/device client/work client/settings client/session client/home client/host
USES_lab/study    := plan curves presets client/cli client/session client/home

# Sites: several ranks that train one model as one device.
ROOMS_site      := link schedule stage plan program
USES_site/stage := schedule link
USES_site/plan := stage schedule link
USES_site/program := plan stage schedule link

# librivulet: the rooms of a device. A room with a SEES_ line sees these houses, and not all that its house uses.
DEVICE := $(addprefix client/,host home session settings eligibility models outbox work device)
$(foreach r,$(DEVICE),$(eval SEES_$r := base crypto wire))
# Documents and curves as arrays and text: no session, no model.
SEES_lab/curves := base wire
# The only room that sees decoders of pictures.
SEES_lab/pack := base crypto wire data

# $(1) = a folder, as a list of its rooms; a folder without rooms is its own.
rooms   = $(if $(ROOMS_$(1)),$(addprefix $(1)/,$(ROOMS_$(1))),$(1))
reverse = $(if $(1),$(call reverse,$(wordlist 2,99,$(1))) $(firstword $(1)))
house   = $(firstword $(subst /, ,$(1)))
# $(2) in the line of room $(1): a room of its house, or with a slash another's.
used = $(if $(findstring /,$(2)),$(2),$(call house,$(1))/$(2))
# Folders that a file in folder $(1) sees.
sees = $(1) $(if $(findstring /,$(1)),$(foreach u,$(USES_$(1)),$(call used,$(1),$u))) \
       $(foreach f,$(or $(SEES_$(1)),$(USES_$(call house,$(1)))),$(call rooms,$f))
inc  = $(addprefix -iquote ,$(call sees,$(1)))
