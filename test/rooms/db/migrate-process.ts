import type { Tool } from '../../../src/contracts/tool.ts'
import PostgresDb from '../../../src/extras/postgres/index.ts'
import SqliteDb from '../../../src/tools/sqlite/index.ts'
import { type LogLine, type RuntimeOptions, runtimeFor } from './fixture.ts'

/** A process of its own that boots the tool: `migrate-process.ts <address> <domains folder>`. Prints the ids that it applied as JSON. */
const [address, folder] = process.argv.slice(2) as [string, string]
const { tool, options } = JSON.parse(address) as { tool: 'sqlite' | 'postgres'; options: RuntimeOptions }
process.stdout.write('ready\n')
process.stdin.once('data', async () => {
  const log: LogLine[] = []
  const Class = tool === 'sqlite' ? SqliteDb : PostgresDb
  const db: Tool = new Class(runtimeFor({ ...options, domainsDir: [folder], log }))
  await db.boot?.()
  await db.stop?.()
  const applied = log
    .map(({ message }) => /^Applied migration (.*)$/.exec(message)?.[1])
    .filter((id) => id !== undefined)
  process.stdout.write(`${JSON.stringify(applied)}\n`)
  process.stdin.destroy()
})
