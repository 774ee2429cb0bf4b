import { parseFlags } from './arguments.ts'

const USAGE = `Usage: npm start -- [--boot-tool <tool>]
  --boot-tool <tool>  boots that tool alone, which applies migrations, and ends: with 0, or with 1 and the reason
  --watch             replaces the lanes when their code changes (npm run dev)`

/** The flags with which `src/main.ts` was started. */
export interface CommandLine {
  /** `--watch`: the code is being worked on. */
  readonly isDevelopment: boolean
  /** Name of the tool to boot alone; null: the whole runtime starts. */
  readonly bootTool: string | null
}

/** @throws UsageFault for an unknown flag, a flag without its value, and an argument that is not a flag */
export function readCommandLine(args: readonly string[] = process.argv.slice(2)): CommandLine {
  const { values } = parseFlags(USAGE, {
    args: [...args],
    options: { watch: { type: 'boolean', default: false }, 'boot-tool': { type: 'string' } },
  })
  return { isDevelopment: values.watch, bootTool: values['boot-tool'] ?? null }
}
