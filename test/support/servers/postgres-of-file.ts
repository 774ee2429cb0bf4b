import { after, test } from 'node:test'
import { type PostgresOptions, type PostgresServer, postgresServer } from './postgres.ts'

/** One server for all tests of a file. Null where there is none: the file's tests then stand as skipped under `name`. */
export async function serverOfFile(name: string, options?: PostgresOptions): Promise<PostgresServer | null> {
  return postgresServer({ after, skip: (reason) => void test(name, { skip: reason }) }, options)
}
