import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { HttpContext } from '../../../src/contracts/http-request.ts'
import type { State } from '../../../src/contracts/state.ts'
import { Sessions } from '../../../src/runtime/sessions.ts'
import MemoryStateTool from '../../../src/tools/memory-state/index.ts'
import { buildTool } from '../../support/tool-runtime.ts'

function stateOf(t: TestContext): State {
  const { tool } = buildTool(MemoryStateTool)
  t.after(() => tool.stop())
  return tool.api()
}

/** A request of a browser that keeps what it is given. */
function browser() {
  const cookies: Record<string, string> = {}
  const setCookie = (name: string, value: string): void => {
    cookies[name] = value
  }
  const context = { method: 'GET', headers: {}, cookies, setCookie, setHeader() {} }
  return { context: context as unknown as HttpContext, cookies }
}

test('the ids of sessions cannot be had from the store', async (t) => {
  const state = stateOf(t)
  const { context, cookies } = browser()
  await new Sessions(state).start(context, { user: 'ada' })
  const keys = await state.keys({ namespace: 'sessions' })
  assert.equal(keys.length, 1)
  assert.ok(!keys.includes(cookies['__Host-session']!))
})

test('a session that is ended while a request renews it stays ended', async (t) => {
  const state = stateOf(t)
  const { context } = browser()
  await new Sessions(state).start(context, { user: 'ada' })
  // Somebody logs out between the look and the renewal.
  const slow: State = {
    ...state,
    get: (async (key, options) => {
      const session = await state.get(key, options)
      await state.clear(options)
      return session
    }) as State['get'],
  }
  await new Sessions(slow, { rolling: true }).read(context)
  assert.equal(await new Sessions(state).read(context), null)
})
