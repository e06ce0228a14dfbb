import { Argument, type Command } from "commander";
import { print } from "../print.ts";

// Each asks `holdfast __complete` for what may stand where the cursor is; where that is nothing, the shell's own files.
const scripts = {
  bash: `_holdfast() {
  local found IFS=$'\\n'
  found=($(holdfast __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  COMPREPLY=("\${found[@]%%$'\\t'*}")
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *: ]] && compopt -o nospace
  return 0
}
complete -o default -F _holdfast holdfast
`,
  zsh: `#compdef holdfast
_holdfast() {
  local -a found
  found=("\${(@f)$(holdfast __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("\${(@)found%%$'\\t'*}")
  [[ -n $found[1] ]] && compadd -- "\${found[@]}" || _files
}
compdef _holdfast holdfast
`,
  fish: `complete -c holdfast -a '(holdfast __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
} as const;

export function define(command: Command): void {
  command
    .addArgument(new Argument("<shell>", "the shell that is to complete").choices(Object.keys(scripts)))
    .addHelpText("after", EXAMPLES)
    .action(completion);
}

async function completion(shell: keyof typeof scripts): Promise<void> {
  await print(scripts[shell]);
}

const EXAMPLES = `
Examples:
  source <(holdfast completion bash)                 for this shell; in ~/.bashrc for all
  holdfast completion zsh > ~/.zfunc/_holdfast       with ~/.zfunc in fpath, before compinit
  holdfast completion fish > ~/.config/fish/completions/holdfast.fish

Completes commands, options, their values, and the names of sandboxes, processes and snapshots, which it asks the server
for; without one it is silent. The program must be found as holdfast in the PATH.`;
