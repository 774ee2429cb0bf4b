// The text of a client, whatever it is made of. That compilers take it: test/rooms/client.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientText } from '../../../src/devtools/client/write.ts'
import { ODD_EVENTS, ODD_ROUTES, ODD_SCHEMAS, routeInfo } from '../../rooms/client/routes.ts'

test('the text is the same in whatever order plugins register their routes', () => {
  const text = clientText('odd', ODD_ROUTES, ODD_EVENTS)
  assert.equal(clientText('odd', ODD_ROUTES.toReversed(), new Map([...ODD_EVENTS].reverse())), text)
})

test('500 routes take less than a second', () => {
  const schema = {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`field${n}`, ODD_SCHEMAS.tree])),
  }
  const routes = Array.from({ length: 500 }, (_, n) =>
    routeInfo(n % 2 === 0 ? 'POST' : 'PUT', `/things${n}/:id`, { schemas: { body: schema, response: schema } }),
  )
  const before = process.cpuUsage()
  const text = clientText('many', routes, ODD_EVENTS)
  const { user, system } = process.cpuUsage(before)
  assert.equal(text.match(/this\.#transport\.call\(/g)?.length, 500)
  assert.ok(user + system < 1_000_000, `${user + system} µs`)
})
