import assert from 'node:assert/strict'
import { test } from 'node:test'
import AuthTool from '../../../src/tools/auth/index.ts'
import { buildTool } from '../../support/tool-runtime.ts'

const { hashPassword, verifyPassword } = buildTool(AuthTool).tool.api()

test('a password verifies against its own hash and no other', async () => {
  const hash = await hashPassword('correct horse')
  assert.match(hash, /^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/)
  assert.equal(await verifyPassword('correct horse', hash), true)
  assert.equal(await verifyPassword('correct horsf', hash), false)
  assert.equal(await verifyPassword('', hash), false)
})

test('two hashes of one password differ', async () => {
  assert.notEqual(await hashPassword('same'), await hashPassword('same'))
})

test('a hash with other settings still verifies', async () => {
  // Made with node:crypto: scryptSync('pleaseletmein', 'SodiumChloride', 64, { N: 16384, r: 8, p: 1 }), the vector of RFC 7914, section 12.
  const key = Buffer.from(
    '7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887',
    'hex',
  )
  const hash = `scrypt$16384$8$1$${Buffer.from('SodiumChloride').toString('base64url')}$${key.toString('base64url')}`
  assert.equal(await verifyPassword('pleaseletmein', hash), true)
  assert.equal(await verifyPassword('pleaseletmeim', hash), false)
})

test('one spelling of a letter verifies against the other', async () => {
  assert.equal(await verifyPassword('cafe\u0301', await hashPassword('caf\u00e9')), true)
})

for (const [what, password] of [
  ['an empty one', ''],
  ['1025 bytes', 'x'.repeat(1025)],
  ['1026 bytes in 513 characters', 'ü'.repeat(513)],
  ['a number', 5],
  ['undefined', undefined],
  ['an object', {}],
] as const) {
  test(`hashing refuses ${what}, verifying says false`, async () => {
    await assert.rejects(hashPassword(password as string), { code: 'AUTH_INVALID_INPUT' })
    assert.equal(await verifyPassword(password as string, await storedHash()), false)
  })
}

test('1024 bytes are a password', async () => {
  const longest = 'ü'.repeat(512)
  assert.equal(await verifyPassword(longest, await hashPassword(longest)), true)
})

for (const hash of [
  '',
  'plain',
  '$2b$10$abcdefghijklmnopqrstuv',
  'scrypt$0$8$1$c2FsdHNhbHQ$a2V5a2V5a2V5a2V5a2V5aw',
  'scrypt$3$8$1$c2FsdHNhbHQ$a2V5a2V5a2V5a2V5a2V5aw',
  'scrypt$1048576$99$99$c2FsdHNhbHQ$a2V5a2V5a2V5a2V5a2V5aw',
  'scrypt$16384$0$1$c2FsdHNhbHQ$a2V5a2V5a2V5a2V5a2V5aw',
  'scrypt$16384$8$1$$',
  'scrypt$16384$8$1$c2FsdHNhbHQ$a2V5',
  null,
  5,
]) {
  test(`${JSON.stringify(hash)} is no hash`, async () => {
    assert.equal(await verifyPassword('password', hash as string), false)
  })
}

let stored: Promise<string> | undefined
function storedHash(): Promise<string> {
  stored ??= hashPassword('stored')
  return stored
}
