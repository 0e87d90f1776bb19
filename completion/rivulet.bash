# bash completion of rivulet, rivuletd and rivulet-site. What there is the programs say themselves (--print-options: base/core/option.h has its lines), so
# that this file names no command and no option. Names of jobs and devices are asked of the coordinator that the line names.
# shellcheck shell=bash

# Prints, one a line, the names of all devices or jobs: _rivulet_names PROGRAM device|job [OPTION...]. Whoever waits for a completion does
# not wait long: no answer within 0.3 s, or none at all, and there are no names.
_rivulet_names() {
	timeout 0.3 "$1" "$2" list --names "${@:3}" 2>/dev/null </dev/null
}

# Of the words in standard input, one a line, those that the current one begins go to COMPREPLY. Not by compgen -W, which expands words: a
# name may have been chosen by anybody.
_rivulet_offer() {
	local word

	while IFS= read -r word; do
		[[ -n $word && $word == "$1"* ]] || continue
		printf -v word %q "$word"
		COMPREPLY+=("$word")
	done
}

# What a value or word may be that a usage calls KIND: _rivulet_kind KIND CURRENT PROGRAM COMMAND [OPTION...].
_rivulet_kind() {
	local kind=$1 current=$2 program=$3 command=$4
	shift 4
	case $kind in
	FILE | PATH | JOBFILE | FOLDER)
		compopt -o filenames 2>/dev/null
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
		;;
	DIR)
		compopt -o filenames 2>/dev/null
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$current")
		;;
	DEVICE) _rivulet_offer "$current" < <(_rivulet_names "$program" device "$@") ;;
	JOB)
		# Only what is not over can be changed.
		[[ $command == "job "@(pause|resume|stop|set) ]] || set -- --all "$@"
		_rivulet_offer "$current" < <(_rivulet_names "$program" job "$@")
		;;
	*[!a-z\|-]*) ;;
	*) _rivulet_offer "$current" <<<"${kind//|/$'\n'}" ;; # words to choose from: "round|reports|time"
	esac
}

# The words of the line up to the cursor, as the program will see them: bash also cuts at "=" and ":".
_rivulet_words() {
	local i part rest=${COMP_LINE:0:COMP_POINT} blanks

	words=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		blanks=${rest%%[![:blank:]]*}
		rest=${rest#"$blanks"}
		part=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || part=$rest
		rest=${rest#"$part"}
		if ((i > 0)) && [[ -z $blanks ]]; then
			words[-1]+=$part
		else
			words+=("$part")
		fi
	done
}

_rivulet() {
	local program=${1/#\~\//$HOME/} words word current name value i command='' option='' only_words=''
	local kind path letter help usage IFS=$' \t\n'
	local -a connection=()
	local -A subcommands=() options=() takes=() usages=()

	COMPREPLY=()
	_rivulet_words
	while IFS=$'\x1f' read -r kind path name letter value help; do
		case $kind in
		command)
			# Its parent's: all but the last word.
			[[ $path == *' '* ]] && usage=${path% *} || usage=
			subcommands[".$usage"]+=$'\n'${path##* }
			;;
		usage)
			# Without the subcommand itself, which may be "device show|erase".
			for word in $path; do help=${help#* }; done
			usages[".$path"]+=" $help"
			;;
		option)
			options[".$path"]+=$'\n'--$name
			takes[".$path --$name"]=$value
			[[ -z $letter ]] || takes[".$path -$letter"]=$value
			;;
		esac
	done < <("$program" --print-options 2>/dev/null | tr '\t' '\037')

	# Where in the line are we? Either behind an option that wants a value, or at a word of `command`.
	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		word=${words[i]}
		if [[ -n $option ]]; then
			[[ $option == --@(socket|url|home|token-file|ca) ]] && connection+=("$option" "$word")
			option=
		elif [[ -n $only_words || $word != -?* ]]; then
			[[ -z ${subcommands[".$command"]-} ]] && continue
			# Nothing is known of what stands behind a subcommand that there is not.
			[[ ${subcommands[".$command"]}$'\n' == *$'\n'"$word"$'\n'* ]] || return 0
			command=${command:+$command }$word
		elif [[ $word == -- ]]; then
			only_words=1
		elif [[ $word == --*=* ]]; then
			[[ ${word%%=*} == --@(socket|url|home|token-file|ca) ]] && connection+=("$word")
		elif [[ -n ${takes[".$command $word"]-} ]]; then
			option=$word
		fi
	done
	current=${words[-1]}
	if [[ -z $option$only_words && $current == --*=* ]]; then
		option=${current%%=*}
		current=${current#*=}
	fi

	if [[ -n $option ]]; then
		_rivulet_kind "${takes[".$command $option"]-}" "$current" "$program" "$command" "${connection[@]}"
		# What bash replaces begins behind the "=", unless that is no end of a word.
		[[ ${words[-1]} == --*=* && $COMP_WORDBREAKS != *=* ]] && COMPREPLY=("${COMPREPLY[@]/#/$option=}")
		return 0
	fi
	if [[ -z $only_words && $current == -* ]]; then
		_rivulet_offer "$current" <<<"${options[".$command"]-}"
		return 0
	fi
	if [[ -n ${subcommands[".$command"]-} ]]; then
		_rivulet_offer "$current" <<<"${subcommands[".$command"]}"
		return 0
	fi

	# A word: what kind of word its usage says, once the options and their values are left out.
	usage=${usages[".$command"]-}
	read -r -a words <<<"${usage//[][()|]/ }"
	usage=
	for word in "${words[@]}"; do
		if [[ -n $option ]]; then
			option=
		elif [[ $word == -* ]]; then
			[[ -z ${takes[".$command $word"]-} ]] || option=$word
		else
			word=${word%...}
			[[ " $usage " == *" $word "* ]] || usage+=" $word"
		fi
	done
	for word in $usage; do
		_rivulet_kind "$word" "$current" "$program" "$command" "${connection[@]}"
	done
}

complete -F _rivulet rivulet rivuletd rivulet-site
