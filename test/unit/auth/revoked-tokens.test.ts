import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Claims } from '../../../src/contracts/auth.ts'
import { RevokedTokens, revocationId } from '../../../src/tools/auth/revocations.ts'
import type { Generation } from '../../../src/transport/memory/words.ts'

const VALID = 1500
const claimsOf = (jti: string) => ({ sub: 'u', iss: 'us', jti, exp: 0 })

test('beyond a thousand revoked tokens those whose time is over are forgotten, and no other', async () => {
  const generation = { current: 1 }
  const nowSec = Date.now() / 1000
  const pages = [
    Array.from({ length: VALID }, (_, n) => [revocationId(claimsOf(`valid-${n}`)), nowSec + 3600] as const),
    Array.from({ length: VALID }, (_, n) => [revocationId(claimsOf(`over-${n}`)), nowSec - 1] as const),
  ]
  const tokens = new RevokedTokens(generation as unknown as Generation, async () => {
    const revoked = pages.shift()!
    return { revoked, generation: 1, hasMore: pages.length > 0 }
  })
  assert.equal(await tokens.has(claimsOf('valid-0')), true)
  for (let n = 0; n < VALID; n++) assert.equal(tokens.has(claimsOf(`valid-${n}`)), true, `valid-${n}`)
  assert.equal(tokens.has(claimsOf('over-0')), false)
  assert.equal(tokens.has(claimsOf('unknown')), false)
})

test('what is revoked while an answer is on its way is asked for before a token is good', async () => {
  const generation = { current: 1 }
  const revoked = [[revocationId(claimsOf('first')), 9e9] as const]
  const tokens = new RevokedTokens(generation as unknown as Generation, async () => {
    const page = { revoked: [...revoked], generation: generation.current, hasMore: false }
    if (generation.current === 1) {
      revoked.push([revocationId(claimsOf('second')), 9e9])
      generation.current = 2
    }
    return page
  })
  assert.equal(await tokens.has(claimsOf('second')), true)
})

test('a revoked token is that of its issuer alone', async () => {
  const page = { revoked: [[revocationId(claimsOf('same')), 9e9] as const], generation: 1, hasMore: false }
  const tokens = new RevokedTokens({ current: 1 } as unknown as Generation, async () => page)
  assert.equal(await tokens.has(claimsOf('same')), true)
  for (const iss of ['them', undefined]) assert.equal(tokens.has({ ...claimsOf('same'), iss } as Claims), false, iss)
})
