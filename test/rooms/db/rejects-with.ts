import assert from 'node:assert/strict'
import { DbError, type DbErrorKind } from '../../../src/core/errors/catalogue.ts'

/** Rejected with a DbError of that kind. */
export async function rejectsWith(
  kind: DbErrorKind,
  promise: Promise<unknown>,
  message?: RegExp,
  code: 'DB_ERROR' | 'DB_CONTENDED' = 'DB_ERROR',
): Promise<DbError> {
  let caught: unknown
  await promise.catch((thrown) => {
    caught = thrown
  })
  assert.ok(caught instanceof DbError, `expected a DbError ${kind}, got ${caught}`)
  assert.equal(caught.kind, kind, caught.message)
  assert.equal(caught.code, code)
  if (message) assert.match(caught.message, message)
  return caught
}
