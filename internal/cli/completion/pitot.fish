# fish completion of pitot. Load it with: pitot completion fish | source
function __pitot
	set -l words (commandline -opc)
	set -l lines ($words[1] completion words fish $words[2..-1] (commandline -ct) 2>/dev/null)
	if test "$lines[1]" = files
		__fish_complete_path (commandline -ct)
	else
		printf '%s\n' $lines[2..-1]
	end
end
complete -c pitot -f -a '(__pitot)'
