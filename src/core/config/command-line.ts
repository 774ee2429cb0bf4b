// Flags of the start and of the commands.
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { codeOf, messageOf } from '../errors/description.ts'
import { nearestName } from './nearest-name.ts'

/** Exit status of a command whose arguments are wrong. */
export const EXIT_USAGE = 2

/** The arguments are wrong. The message says why, and which there are: a command prints it and exits with `EXIT_USAGE`. */
export class UsageFault extends Error {}

/** A command cannot be carried out. The message says why, and what is possible instead. */
export class CommandError extends Error {}

/**
 * `parseArgs` of node:util. With `--help` or `-h` among the arguments it prints the usage, and the process ends.
 * @param usage follows the message of a fault, too
 * @throws UsageFault for an unknown flag, with the name that was probably meant, for a flag without its value, and for an argument too many
 */
export function parseFlags<Config extends ParseArgsConfig>(
  usage: string,
  config: Config,
): ReturnType<typeof parseArgs<Config>> {
  if (asksForHelp(config.args ?? process.argv.slice(2))) {
    console.log(usage)
    process.exit(0)
  }
  try {
    return parseArgs(config)
  } catch (error) {
    const flags = Object.keys(config.options ?? {}).map((name) => `--${name}`)
    const unknown =
      codeOf(error) === 'ERR_PARSE_ARGS_UNKNOWN_OPTION' ? /'(-[^'=]*)/.exec(messageOf(error))?.[1] : undefined
    if (unknown !== undefined) throw unknownName(`Unknown option '${unknown}'`, unknown, flags, usage)
    throw new UsageFault(`${messageOf(error)}\n\n${usage}`)
  }
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? args.length : end).some((arg) => arg === '--help' || arg === '-h')
}

/**
 * The fault of a name that is none of those that there are, with the one that was probably meant.
 * @param message says so: `There is no command strat`
 */
export function unknownName(message: string, wanted: string, known: readonly string[], usage: string): UsageFault {
  const meant = nearestName(wanted, known)
  return new UsageFault(`${message}${meant === undefined ? '' : `: was ${meant} meant?`}\n\n${usage}`)
}

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
