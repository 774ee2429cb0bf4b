// All commands of `heddle`, what is loaded for each, and how each ends. `src/heddle.cjs` runs start, dev, test and `migrate up` itself.
import { CommandError, EXIT_USAGE, parseFlags, UsageFault, unknownName } from '../../core/config/command-line.ts'
import { ConfigFaults, EXIT_CONFIG } from '../../core/config/load.ts'
import { HeddleError, isPackageMissing } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { ownManifest } from '../../core/modules/optional-package.ts'
import type { Command } from './command.ts'

const USAGE = `Usage: heddle <command>
  create <folder>     writes a new application; \`--with postgres,redis,…\`: it uses that, too; \`create --deploy systemd|compose|k8s|pm2\`: the files that deploy one
  start               serves it; \`start --boot-tool db\` boots that tool alone
  dev                 serves it, loads what is saved, and logs a line per request; \`dev --inspect\` listens for a debugger
  new                 writes a domain, plugin, migration or tool; \`new --help\`
  test [words]        runs the tests whose path has one of the words; \`test --watch\` again when a file is saved
  check               types, linter where Biome is installed, architecture
  lint                the report of /system/lint
  tools               lists the tools; \`tools use <implementation>\` swaps one
  migrate [up]        applies the migrations that are pending, and ends; also migrate status|down|redo|again|done|reset|seed
  client              writes a typed client of the service; \`client --out client.ts\`
  agents              writes into AGENTS.md what is there, for coding assistants
  db types            writes the types of all tables, from the migrations; --check only compares
\`heddle <command> --help\` says more`

/** What `src/heddle.cjs` has run before anything asks here: they are names that there are. */
const elsewhere = (): Promise<Command> => Promise.reject(new Error('This command is run by src/heddle.cjs'))

const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  create: async () => (await import('./create.ts')).create,
  start: elsewhere,
  dev: elsewhere,
  new: async () => (await import('./generate.ts')).make,
  test: elsewhere,
  check: async () => (await import('./check.ts')).check,
  lint: async () => (await import('./check.ts')).lint,
  tools: async () => (await import('./tools.ts')).tools,
  migrate: async () => (await import('./migrate.ts')).migration,
  client: async () => (await import('./generate.ts')).client,
  agents: async () => (await import('./generate.ts')).agents,
  db: async () => (await import('./generate.ts')).db,
}

/** Runs the command of that name, and sets the exit status: 2 for bad arguments, 78 for bad settings, 1 when it cannot be carried out. */
export async function runCommand(name: string | undefined, args: readonly string[]): Promise<void> {
  try {
    await run(name, args)
  } catch (error) {
    const status = statusOf(error)
    if (status === null) throw error
    console.error(messageOf(error))
    process.exitCode = status
  }
}

async function run(name: string | undefined, args: readonly string[]): Promise<void> {
  if (name === '--help' || name === '-h' || name === 'help') return console.log(USAGE)
  if (name === '--version') return console.log(ownManifest().version)
  if (name === undefined) throw new UsageFault(`Which command?\n\n${USAGE}`)
  if (!Object.hasOwn(COMMANDS, name)) {
    const message = name.startsWith('-') ? `Unknown option '${name}'` : `There is no command ${name}`
    throw unknownName(message, name, [...Object.keys(COMMANDS), '--help', '--version'], USAGE)
  }
  const command = await COMMANDS[name]!()
  const { values, positionals } = parseFlags(command.usage, {
    args: [...args],
    options: command.options,
    allowPositionals: command.takesWords,
  })
  await command.run(values, positionals)
}

/** Null for what nobody expects, which is thrown with its stack. */
function statusOf(error: unknown): number | null {
  if (error instanceof UsageFault || isPackageMissing(error)) return EXIT_USAGE
  if (error instanceof ConfigFaults) return EXIT_CONFIG
  if (error instanceof HeddleError) return error.code === 'CONFIG_INVALID' ? EXIT_CONFIG : 1
  return error instanceof CommandError ? 1 : null
}
