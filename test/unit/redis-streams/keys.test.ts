import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  broadcastGroupOf,
  consumerOf,
  consumerOfBroadcast,
  groupOf,
  replicaOfConsumer,
} from '../../../src/runtime/redis-streams/keys.ts'

const REPLICAS = ['a', 'host:8000', 'host:8000:1', 'a:b:c', ':', 'x:primary', 'with@sign', 'line\nbreak']
const SUBSCRIBERS = ['users.CreateUser.onCreated', 'a@b', 'a%40b', 'a%b', '%25', '@', 'a@host:8000:1', 'bound say', '']

test("a consumer tells its replica, whatever the replica's id holds", () => {
  for (const replica of REPLICAS) {
    assert.equal(replicaOfConsumer(consumerOf(replica)), replica)
  }
  for (const stranger of ['alice', 'a:b', 'host:8000:', ':hub', 'a:0']) assert.equal(replicaOfConsumer(stranger), null)
})

test('the group of a usual subscriber has its name unchanged', () => {
  assert.equal(groupOf('users.CreateUser.onCreated'), 'users.CreateUser.onCreated')
})

test('a group tells whether it is broadcast, and to whom', () => {
  const seen = new Set<string>()
  for (const subscriber of SUBSCRIBERS) {
    const shared = groupOf(subscriber)
    assert.equal(consumerOfBroadcast(shared), null)
    seen.add(shared)
    for (const replica of REPLICAS) {
      const own = broadcastGroupOf(subscriber, consumerOf(replica))
      assert.equal(consumerOfBroadcast(own), consumerOf(replica))
      assert.equal(replicaOfConsumer(consumerOfBroadcast(own)!), replica)
      seen.add(own)
    }
  }
  assert.equal(seen.size, SUBSCRIBERS.length * (1 + REPLICAS.length), 'no two share a name')
})
