import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { faultsOf } from '../../support/config-faults.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-secrets-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string | Buffer): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

test('every secret may stand in a file, of which one line end is dropped', () => {
  const { settings, warnings } = loadSettings({
    HTTP_HOST: '0.0.0.0',
    HTTP_ALLOWED_HOSTS: '*',
    AUTH_SECRET_KEY_FILE: file('key', ' 32 characters and blanks at its ends \r\n'),
    RDB_PASSWORD_FILE: file('rdb', 'one\n\n'),
    KV_PASSWORD_FILE: file('kv', '\ufefftwo'),
  })
  assert.equal(settings.authSecretKey, ' 32 characters and blanks at its ends ')
  assert.equal(settings.rdbPassword, 'one\n')
  assert.equal(settings.kvPassword, 'two')
  assert.ok(!warnings.some((warning) => warning.includes('_FILE')))
})

test('a secret that is set twice, or whose file is none, is a fault that shows no secret', () => {
  assert.deepEqual(faultsOf({ KV_PASSWORD: 'hidden', KV_PASSWORD_FILE: '/run/kv' }), [
    'KV_PASSWORD_FILE: expected nothing because KV_PASSWORD is set, got "/run/kv"',
  ])
  for (const [path, reason] of [
    [join(folder, 'missing'), /ENOENT/],
    [folder, /which is not a file/],
    ['/dev/zero', /which is not a file/],
    [file('empty', '\n'), /which is empty/],
    [
      file('latin1', Buffer.from('pässword', 'latin1')),
      /latin1:1: the byte 0xE4 \(ä in Latin-1\) in column 2 is not UTF-8/,
    ],
    [file('bytes', Buffer.from([1, 0, 2])), /bytes:1: a NUL/],
    [file('large', 'x'.repeat(70_000)), /with 70000 bytes, more than 65536/],
  ] as const) {
    const faults = faultsOf({ RDB_PASSWORD_FILE: path })
    assert.equal(faults.length, 1)
    assert.match(faults[0]!, /^RDB_PASSWORD_FILE: expected a file with the secret, got /)
    assert.match(faults[0]!, reason)
  }
})

test('a key in a file is held to the same rules, and its text is not shown', () => {
  const faults = faultsOf({ AUTH_SECRET_KEY_FILE: file('short', 'too short') })
  assert.equal(faults.length, 1)
  assert.doesNotMatch(faults[0]!, /too short/)
})
