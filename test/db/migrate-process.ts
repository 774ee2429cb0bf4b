import { migrate } from '../../src/migrations/runner.ts'
import { Connection } from '../../src/tools/sqlite/connection.ts'
import { SqliteMigrations } from '../../src/tools/sqlite/migration-driver.ts'

/** A process of its own that migrates: `migrate-process.ts <database> <domains folder>`. Prints the ids that it applied as JSON. */
const [path, folder] = process.argv.slice(2) as [string, string]
process.stdout.write('ready\n')
process.stdin.once('data', async () => {
  const driver = new SqliteMigrations(new Connection(path))
  const applied = await migrate(driver, [folder], () => {})
  driver.close()
  process.stdout.write(`${JSON.stringify(applied)}\n`)
  process.stdin.destroy()
})
