#compdef pitot
# zsh completion of pitot. Load it with: source <(pitot completion zsh)
_pitot() {
	local -a lines whole part whole_about part_about
	local line value
	lines=("${(@f)$("${(Q)words[1]}" completion words zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ $lines[1] == files ]]; then
		_files
		return
	fi
	for line in "${(@)lines[2,-1]}"; do
		value=${line%%$'\t'*}
		if [[ $value == *[:=@/?\&] ]]; then
			part+=("$value") part_about+=("${line/$'\t'/  }")
		else
			whole+=("$value") whole_about+=("${line/$'\t'/  }")
		fi
	done
	(( $#whole )) && compadd -l -d whole_about -a whole
	(( $#part )) && compadd -S '' -l -d part_about -a part
}
compdef _pitot pitot
