import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { MigrationDriver } from './driver.ts'
import { discoverMigrations, orderMigrations } from './files.ts'
import type { MigrationLog } from './runner.ts'
import { scriptFaultText } from './script-fault.ts'

/**
 * Runs `<domain>/seeds/*.sql`, each in its own transaction and by file name: first those of the domains whose migrations come first. Nothing is
 * recorded: a seed runs each time, so it should leave alone what is there (`ON CONFLICT DO NOTHING`).
 * @returns the seeds that ran, as `<domain>/<name>`
 * @throws MIGRATION_INVALID for one that fails, which is rolled back (those before it stay)
 */
export async function runSeeds(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  log: MigrationLog,
): Promise<string[]> {
  const order = [...new Set(orderMigrations(await discoverMigrations(domainsFolders)).map(({ domain }) => domain))]
  const done: string[] = []
  for (const { id, path } of await discoverSeeds(domainsFolders, order)) {
    const text = await readFile(path, 'utf8')
    try {
      await driver.transaction((session) => session.run(text))
    } catch (thrown) {
      const message = scriptFaultText(`Seed ${id} failed and was rolled back`, thrown, { path, sql: text })
      throw new HeddleError('MIGRATION_INVALID', message, { cause: thrown })
    }
    log('INFO', `Ran seed ${id}`)
    done.push(id)
  }
  return done
}

interface Seed {
  id: string
  domain: string
  path: string
}

async function discoverSeeds(domainsFolders: readonly string[], order: readonly string[]): Promise<Seed[]> {
  const seeds: Seed[] = []
  for (const folder of domainsFolders) {
    for (const domain of await namesIn(folder)) {
      for (const name of await namesIn(join(folder, domain, 'seeds'))) {
        if (name.endsWith('.sql'))
          seeds.push({ id: `${domain}/${name.slice(0, -4)}`, domain, path: join(folder, domain, 'seeds', name) })
      }
    }
  }
  // A domain without migrations comes last.
  const place = ({ domain }: Seed): number => (order.includes(domain) ? order.indexOf(domain) : order.length)
  return seeds.sort((a, b) => place(a) - place(b) || (a.id < b.id ? -1 : 1))
}

/** None for what is no folder. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch {
    // Not every domain has seeds; what else is in a folder of domains may be a file.
    return []
  }
}
