import { after, describe, test } from 'node:test'
import { type PostgresOptions, type PostgresServer, postgresServer } from './postgres.ts'
import type { ServerOwner } from './provide.ts'

/** A suite on one server of its own or the shared one. Where there is none, it holds one test that is skipped under its name. */
export function describeOnPostgres(
  name: string,
  runTests: (server: PostgresServer) => void | Promise<void>,
  options?: PostgresOptions | ((owner: Pick<ServerOwner, 'after'>) => Promise<PostgresOptions>),
): void {
  void describe(name, async () => {
    const ends: (() => Promise<void>)[] = []
    const owner = { after: (end: () => Promise<void>) => void ends.push(end) }
    const given = typeof options === 'function' ? await options(owner) : options
    const server = await postgresServer({ ...owner, skip: (reason) => void test(name, { skip: reason }) }, given)
    if (server !== null) await runTests(server)
    // After the hooks of the tests, which end what uses the server.
    after(async () => {
      for (const end of ends.reverse()) await end()
    })
  })
}
