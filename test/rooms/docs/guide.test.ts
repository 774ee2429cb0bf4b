import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { classNameOf } from '../../../src/runtime/kernel/discover.ts'
import AuthTool from '../../../src/tools/auth/index.ts'
import { INHERITED, run } from '../../support/command.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { LOADER } from '../../support/loader.ts'
import { suiteOwner } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { buildTool } from '../../support/tool-runtime.ts'
import { until } from '../../support/until.ts'
import { guideSnippets, writeGuide } from './guide.ts'
import { ROOT, sourcesIn } from './sources.ts'

const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const PASSWORD = 'correct horse battery'

test('the code of the guide for plugin authors type-checks', async (t) => {
  const root = writeGuide(t)
  const { code, output } = await run(process.execPath, [TSC, '--noEmit', '-p', root], ROOT)
  assert.equal(code, 0, output)
})

test('the tests that the guide shows pass', async (t) => {
  const root = writeGuide(t)
  const tests = guideSnippets().filter(({ path }) => path.endsWith('.test.ts'))
  assert.ok(tests.length > 0)
  const { code, output } = await run(
    process.execPath,
    [...LOADER, '--test', ...tests.map(({ path }) => join(root, path))],
    ROOT,
    {
      ...INHERITED,
      DOMAINS_DIR: join(root, 'domains'),
      TOOLS_DIR: join(root, 'src/tools'),
    },
  )
  assert.equal(code, 0, output)
})

describe('the shop of the guide', () => {
  const owner = suiteOwner()
  let shop: Shop

  before(async () => {
    shop = await startShop(owner)
  })

  test('every plugin of the guide boots and the lint has nothing to say about the shop', async () => {
    const { json } = shop
    const { plugins } = (await json('/system/status')).body
    for (const { path, text } of guideSnippets()) {
      if (!path.includes('/plugins/')) continue
      const name = `${path.split('/')[1]}.${/^export default class (\w+)/m.exec(text)?.[1] ?? classNameOf(path)}`
      assert.equal(plugins[name]?.status, 'OK', `${name}: ${plugins[name]?.error ?? 'is not there'}`)
    }
    const { body } = await json('/system/lint')
    assert.deepEqual(
      body.findings.filter(({ file }: { file: string }) => file.includes('shop')),
      [],
    )
  })

  test('the routes of the guide answer as it says', async () => {
    const { json, fetch } = shop
    assert.deepEqual((await json('/stock/loom')).body.data, { available: 10 })
    assert.deepEqual((await json('/stock/boat')).body, { success: false, error: 'We have no boat' })
    assert.deepEqual((await json('/prices/loom')).body.data, { item: 'loom', cents: 4000 })
    assert.equal((await json('/orders?limit=0')).status, 422)

    const stream = await fetch('/orders/stream')
    const placed = await shop.post('/orders?quantity=9', { item: 'loom', quantity: 2 })
    assert.equal(placed.status, 201)
    const orders = await until(async () => {
      const { data } = (await json('/orders')).body
      return data[0].shipped_at === null ? null : data
    }, 'the order is shipped')
    assert.deepEqual([orders.length, orders[0].quantity], [1, 2])
    await until(() => shop.mails.length > 0, 'the receipt is mailed')
    assert.deepEqual(JSON.parse(shop.mails[0]!).text, `Order ${placed.body.data.id}: loom`)
    assert.match(await firstFrame(stream), /^data: \{"event":"order\.placed","at":/m)

    await testOrderBehindLetter(shop)

    const claims = []
    for (let n = 0; n < 4; n++) claims.push((await shop.post('/coupons/spring', {})).status)
    assert.deepEqual(claims, [200, 400, 400, 429])

    assert.equal((await shop.post('/staff/login', { password: 'wrong' })).status, 401)
    assert.equal((await shop.post('/stock/loom', { quantity: 1 })).status, 401)
    const { token } = (await shop.post('/staff/login', { password: PASSWORD })).body.data
    const restocked = await shop.post('/stock/loom', { quantity: 1 }, { authorization: `Bearer ${token}` })
    assert.deepEqual(restocked.body.data, { item: 'loom', by: 'staff' })
    assert.deepEqual((await json('/stock/loom')).body.data, { available: 9 })

    const { status, body } = await json('/office/me')
    assert.deepEqual([status, body], [401, { success: false, error: 'Log in first' }])
    const headers = { authorization: `Bearer ${token}` }
    const me = await json('/office/me', { headers })
    assert.deepEqual([me.body.data, me.headers.get('cache-control')], [{ name: 'staff', isAdmin: false }, 'no-store'])
    assert.equal((await json('/office/open', { method: 'PUT', headers })).body.error, 'Admins only')

    const visitor = await shop.post('/visitor', { name: 'Ada' })
    const cookie = visitor.headers.get('set-cookie')!.split(';')[0]!
    assert.equal((await shop.post('/visitor/wishes', { item: 'loom' }, { cookie })).status, 403)
    await shop.post('/visitor/wishes', { item: 'loom' }, { cookie, origin: shop.url })
    assert.deepEqual((await json('/visitor', { headers: { cookie } })).body.data, { name: 'Ada', wishes: ['loom'] })

    const form = new FormData()
    form.append('picture', new Blob(['pixels'], { type: 'image/png' }), 'loom.png')
    const received = await json('/stock/loom/pictures', { method: 'POST', body: form })
    assert.deepEqual(received.body.data, { item: 'loom', pictures: [{ name: 'loom.png', bytes: 6 }] })
    const lines = await json('/stock/loom/lines', { method: 'POST', body: 'a\nb\n' })
    assert.deepEqual(lines.body.data, { item: 'loom', lines: 2 })

    const csv = await (await fetch('/orders.csv')).text()
    assert.match(csv, /^id,item,quantity\n[\w-]+,loom,2\n$/)
    assert.deepEqual((await json('/welcome')).body.data, { text: 'Good morning', open: true })
    assert.deepEqual((await json('/basket/loom')).body.data, { item: 'loom', available: 9 })
    assert.deepEqual((await json('/shop/errors')).body.data, { errors: 0 })
    assert.equal((await json('/shop/slow-calls')).body.data.loop_delays_ms.length, 2)
  })
})

test('each tool has a page, and it names every call and every option', () => {
  const tools = [...sourcesIn('src/contracts')].flatMap(([path, text]) => {
    const page = join(ROOT, path.replace(/\.ts$/, '.md'))
    const other = { 'event-bus.ts': 'events.ts', 'http.ts': 'http-request.ts' }[basename(path)]
    const beside = other === undefined ? '' : readFileSync(join(ROOT, 'src/contracts', other), 'utf8')
    return existsSync(page) ? [{ path, text: text + beside, page: readFileSync(page, 'utf8') }] : []
  })
  assert.equal(tools.length, 10)
  for (const { path, text, page } of tools) {
    const name = basename(path, '.ts').replaceAll('-', '')
    // The one interface of the file that is named like the tool, and what it extends.
    const wanted = new RegExp(`^export interface (?:${name}|Queryable)\\b.*?\\{$(.*?)^\\}$`, 'gims')
    const calls = [...text.matchAll(wanted)].flatMap(([, body]) => [...body!.matchAll(/^ {2}(\w+)(?:<.*)?\(/gm)])
    assert.ok(calls.length > 0, `${path} has no calls`)
    for (const [, call] of calls) assert.match(page, new RegExp(`\`${call}\\b`), `${path}: ${call}`)
    for (const [, body] of text.matchAll(/^export interface \w*(?:Options|Namespaced|Expiring)\b.*?\{$(.*?)^\}$/gms)) {
      for (const [, option] of body!.matchAll(/^ {2}(\w+)\?:/gm)) {
        assert.match(page, new RegExp(`\`[^\`\n]*\\b${option}\\b`), `${path}: ${option}`)
      }
    }
  }
})

/** Bookings of an item: one fails, the next waits, and both go on when the letter is edited and replayed. */
async function testOrderBehindLetter(shop: Shop): Promise<void> {
  const left = async () => (await shop.json('/warehouse/loom')).body.left
  for (const quantity of [5, -9, 6]) assert.equal((await shop.post('/warehouse/loom', { quantity })).status, 200)
  const letters = async () => (await shop.json('/system/dead-letters?event=stock.moved')).body
  const [letter] = await until(async () => ((await letters()).length > 0 ? letters() : undefined), 'the dead letter')
  assert.deepEqual([letter.parked, letter.error, await left()], [true, 'There are 5, and 9 are to go out', 5])
  const edited = await shop.json(`/system/dead-letters/${letter.id}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ payload: { item: 'loom', quantity: -4 } }),
  })
  assert.equal(edited.status, 200)
  await shop.post(`/system/dead-letters/${letter.id}/replay`, {})
  await until(async () => (await left()) === 7, 'the letter, then what has waited for it')
}

interface Shop extends Heddle {
  /** Bodies that the shop's mail server has got. */
  mails: string[]
}

/** The guide's domain, with the shipped ones and a mail server. */
async function startShop(t: ReturnType<typeof suiteOwner>): Promise<Shop> {
  const root = writeGuide(t)
  const mails: string[] = []
  const server = createServer(async (request, response) => {
    mails.push(Buffer.concat(await request.toArray()).toString())
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => void server.close())
  const heddle = await startHeddle(t, {
    domains: [join(root, 'domains'), SHIPPED],
    lanes: 2,
    env: {
      TOOLS_DIR: join(root, 'src/tools'),
      MAIL_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/send`,
      SHOP_STAFF_HASH: await buildTool(AuthTool).tool.api().hashPassword(PASSWORD),
      SHOP_GREETING: 'Good morning',
      PICTURES_DIR: root,
    },
  })
  return { ...heddle, mails }
}

/** What a stream has sent up to the end of its first frame of data. */
async function firstFrame(response: Response): Promise<string> {
  let text = ''
  for await (const chunk of response.body!) {
    text += Buffer.from(chunk).toString()
    if (/^data: .*\n\n/m.test(text)) break
  }
  return text
}
