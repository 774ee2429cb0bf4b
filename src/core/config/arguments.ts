import { type ParseArgsConfig, parseArgs } from 'node:util'
import { codeOf, messageOf } from '../errors/description.ts'
import { nearestName } from './nearest-name.ts'

/** Exit status of a command whose arguments are wrong. */
export const EXIT_USAGE = 2

/** The arguments are wrong. The message says why, and which there are: a command prints it and exits with `EXIT_USAGE`. */
export class UsageFault extends Error {}

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
