# bash completion of pitot. Load it with: source <(pitot completion bash)
_pitot() {
	local first=1 line
	COMPREPLY=()
	while IFS= read -r line; do
		if [[ $first ]]; then
			first=
			if [[ $line == files ]]; then
				compopt -o default +o nospace 2>/dev/null || while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
				return
			fi
			continue
		fi
		COMPREPLY+=("$line")
	done < <("${COMP_WORDS[0]}" completion words bash "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -o nospace -F _pitot pitot
