import { parseFlags, UsageFault } from './arguments.ts'

/** Where the debugger of Node listens by default. */
const INSPECTOR = { port: 9229, host: '127.0.0.1' }

const USAGE = `Usage: npm start -- [--boot-tool <tool>] [--inspect[=[host:]port]]
  --boot-tool <tool>  boots that tool alone, which applies migrations, and ends: with 0, or with 1 and the reason
  --inspect           listens for a debugger: at 127.0.0.1:9229, or at =port, or at =host:port
  --watch             replaces the lanes when their code changes (npm run dev)`

/** The flags with which `src/main.ts` was started. */
export interface CommandLine {
  /** `--watch`: the code is being worked on. */
  readonly isDevelopment: boolean
  /** Name of the tool to boot alone; null: the whole runtime starts. */
  readonly bootTool: string | null
  /** `--inspect`: where to listen for a debugger; null: nowhere. */
  readonly inspector: { readonly port: number; readonly host: string } | null
}

/** @throws UsageFault for an unknown flag, a flag without its value, and an argument that is not a flag */
export function readCommandLine(args: readonly string[] = process.argv.slice(2)): CommandLine {
  const { values } = parseFlags(USAGE, {
    // As Node has it, the flag has a value or none.
    args: args.map((arg) => (arg === '--inspect' ? '--inspect=' : arg)),
    options: {
      watch: { type: 'boolean', default: false },
      'boot-tool': { type: 'string' },
      inspect: { type: 'string' },
    },
  })
  return {
    isDevelopment: values.watch,
    bootTool: values['boot-tool'] ?? null,
    inspector: values.inspect === undefined ? null : inspectorAt(values.inspect),
  }
}

/** @param place `9230`, `0.0.0.0:9230`, `[::1]:9230`, or nothing */
function inspectorAt(place: string): { port: number; host: string } {
  if (place === '') return INSPECTOR
  const [, host = INSPECTOR.host, digits] = /^(?:\[?([^\]]+)\]?:)?(\d{1,5})$/.exec(place) ?? []
  const port = Number(digits)
  if (!(port <= 65_535)) throw new UsageFault(`--inspect=${place} is no port, and no host:port\n\n${USAGE}`)
  return { port, host }
}
