// The command `migrate`, but for `migrate up`, which is a start.
import { CommandError, UsageFault } from '../../core/config/command-line.ts'
import { loadSettings } from '../../core/config/load.ts'
import type { Settings } from '../../core/config/schema.ts'
import { migrate, migrationStatus, rollBack, runSeeds, settle, takeBack } from '../../stores/migrations/runner.ts'
import { again } from '../../stores/migrations/script-fault.ts'
import { command } from './command.ts'
import { type CommandDatabase, openDatabase, readTables } from './database.ts'

const USAGE = `Usage: npm run migrate -- [command]
  up            applies the migrations that are pending (the default)
  status        lists all migrations, and changes nothing; exit code 1 when one is pending, changed or missing
  down [count]  takes back the last ones (1) by their NNN_name.down.sql
  redo [id]     takes one back by its down file and applies it as it is now: without an id the one that was changed since, else the last
  reset         removes every table, applies all migrations, and seeds; not with NODE_ENV=production
  again <id>    an unfinished one, which runs without a transaction, is pending again: you have undone what it had left
  done <id>     an unfinished one counts as applied: it has taken effect, or you have done it by hand
  seed          runs the seeds of all domains`

type Run = (database: CommandDatabase, settings: Settings, argument: string | undefined) => Promise<void>

again.how = 'run the command again'

const log = (level: string, message: string): void => {
  if (level !== 'DEBUG') console.log(message)
}

const COMMANDS: Readonly<Record<string, Run>> = {
  async status(database, { domainsDir }) {
    const all = await database.migrating((driver) => migrationStatus(driver, domainsDir))
    const width = Math.max(...all.map(({ id }) => id.length), 0)
    for (const { id, state, hasDown } of all) console.log(`${id.padEnd(width)}  ${state}${hasDown ? '  (down)' : ''}`)
    if (all.some(({ state }) => state !== 'applied')) process.exitCode = 1
  },
  async down(database, { domainsDir }, argument = '1') {
    if (!/^[1-9]\d{0,5}$/.test(argument)) throw new CommandError(`down takes a number, not ${argument}\n\n${USAGE}`)
    const gone = await database.migrating((driver) => rollBack(driver, domainsDir, Number(argument), log))
    if (gone.length === 0) console.log('No migration is applied')
  },
  async redo(database, { domainsDir, nodeEnv }, id) {
    if (nodeEnv === 'production') throw new CommandError('redo takes rows away: not with NODE_ENV=production')
    await database.migrating((driver) => takeBack(driver, domainsDir, id, log))
    await database.migrating((driver) => migrate(driver, domainsDir, log))
  },
  async again(database, { domainsDir }, id) {
    if (id === undefined) throw new UsageFault(USAGE)
    await database.migrating((driver) => settle(driver, domainsDir, id, false, log))
  },
  async done(database, { domainsDir }, id) {
    if (id === undefined) throw new UsageFault(USAGE)
    await database.migrating((driver) => settle(driver, domainsDir, id, true, log))
  },
  async reset(database, { domainsDir, nodeEnv }) {
    if (nodeEnv === 'production') throw new CommandError('reset removes every table: not with NODE_ENV=production')
    const user = await database.otherUser()
    // Its own tables would go, too, and what it knows of them would be wrong.
    if (user !== null)
      throw new CommandError(
        `reset removes every table, and ${user}: stop it (npm run dev, too), reset, and start it again`,
      )
    const applied = await database.migrating((driver) => driver.applied())
    const [table] = applied.size > 0 ? [] : await readTables(database)
    if (table !== undefined)
      throw new CommandError(
        `reset removes every table, and no migration was ever applied here: the table ${table.name} is somebody else's. Take a database of this service's own`,
      )
    await database.migrating((driver) => driver.clear())
    await database.migrating((driver) => migrate(driver, domainsDir, log))
    await database.migrating((driver) => runSeeds(driver, domainsDir, log))
  },
  async seed(database, { domainsDir }) {
    const done = await database.migrating((driver) => runSeeds(driver, domainsDir, log))
    if (done.length === 0) console.log('There are no seeds: write domains/<domain>/seeds/<name>.sql')
  },
}

const TAKES_ARGUMENT: ReadonlySet<string> = new Set(['down', 'redo', 'again', 'done'])

export const migration = command(USAGE, {}, async (_, [word = '', argument, ...more]) => {
  const run = Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined
  if (run === undefined) throw new UsageFault(`There is no command ${word}\n\n${USAGE}`)
  if (more.length > 0 || (argument !== undefined && !TAKES_ARGUMENT.has(word))) throw new UsageFault(USAGE)
  const { settings } = loadSettings()
  await using database = await openDatabase(settings, log)
  await run(database, settings, argument)
})
