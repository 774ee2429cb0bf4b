import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MUTATIONS, makePlan, mutate } from '../../rooms/hostile/mutation.ts'
import { makeRequest, makeToken, TOKEN } from '../../rooms/hostile/valid-requests.ts'
import { Random } from '../../support/random.ts'

test('the same seed makes the same plans, another seed others', () => {
  const plansOf = (seed: number): string => {
    const random = new Random(seed)
    const plans = Array.from({ length: 500 }, () => makePlan(random))
    return JSON.stringify(
      plans.map((plan) => ({ ...plan, writes: plan.writes.map((bytes) => bytes.toString('latin1')) })),
    )
  }
  assert.equal(plansOf(42), plansOf(42))
  assert.notEqual(plansOf(42), plansOf(43))
})

test('a valid request has its token, a whole head and a length or a coding for its body', () => {
  const random = new Random(1)
  for (let n = 0; n < 1_000; n++) {
    const token = makeToken(random)
    const text = makeRequest(random, token).toString('latin1')
    assert.deepEqual([...new Set(text.match(TOKEN))], [token])
    const [, head, body] = /^(.*?\r\n)\r\n(.*)$/s.exec(text)!
    const length = /^content-length: (\d+)\r$/m.exec(head!)?.[1]
    if (length !== undefined) assert.equal(body!.length, Number(length))
    else if (/^transfer-encoding/m.test(head!)) assert.match(body!, /0\r\n\r\n$/)
    else assert.equal(body, '')
  }
})

test('every mutation changes most requests, never the one that it was given, and takes any bytes', () => {
  const random = new Random(2)
  for (const [name, change] of Object.entries(MUTATIONS)) {
    let changed = 0
    for (let n = 0; n < 100; n++) {
      const bytes = makeRequest(random, makeToken(random))
      const before = Buffer.from(bytes)
      if (!change(random, bytes, makeRequest(random, makeToken(random))).equals(before)) changed++
      assert.ok(bytes.equals(before), `${name} wrote into its input`)
      change(random, random.bytes(1 + random.below(50)), random.bytes(random.below(50)))
    }
    assert.ok(changed > 50, `${name} changed ${changed} of 100`)
  }
  assert.equal(mutate(random, Buffer.alloc(0), Buffer.alloc(0)).length, 0)
})
