import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toConnectError, toDbError } from '../../../src/extras/postgres/failure.ts'

const CONFIG = { host: 'db', port: 5432, user: 'service', database: 'service' }
const fault = (code: string, message: string, more: object = {}) => Object.assign(new Error(message), { code, ...more })
const FROM_SERVER = { severity: 'FATAL' }

const FAULTS = [
  fault('ECONNREFUSED', 'connect ECONNREFUSED'),
  fault('ECONNRESET', 'read ECONNRESET'),
  fault('EHOSTUNREACH', 'connect EHOSTUNREACH'),
  fault('ENOTFOUND', 'getaddrinfo ENOTFOUND db'),
  new AggregateError([fault('ECONNREFUSED', 'connect ECONNREFUSED')]),
  new Error('timeout expired'),
  new Error('Connection terminated unexpectedly'),
  fault('57P03', 'the database system is starting up', FROM_SERVER),
  fault('57P01', 'terminating connection due to administrator command', FROM_SERVER),
  fault('08P01', 'server login has been failing', FROM_SERVER),
  fault('3D000', 'database "service" does not exist', FROM_SERVER),
  fault('28P01', 'password authentication failed', FROM_SERVER),
  fault('53300', 'too many connections', FROM_SERVER),
]

for (const thrown of FAULTS) {
  test(`a connection that cannot be opened names its setting (${thrown.message || 'several addresses'})`, () => {
    assert.match(toConnectError(thrown, CONFIG).message, /RDB_[A-Z]+/)
  })
}

test('a connection that is lost under a statement names the setting of the server', () => {
  assert.match(toDbError(new Error('Connection terminated unexpectedly')).message, /RDB_HOST/)
})
