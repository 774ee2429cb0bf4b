/** The routes and the page of the queues. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Queue } from '../../../src/contracts/event-bus.ts'
import { browser } from '../../support/browser.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [SHIPPED, fileURLToPath(new URL('../../fixtures/queued', import.meta.url))]
const WORK = 'work.Jobs.work'
const PATH = `/system/queues/${WORK}`

const publish = async (heddle: Heddle, event: string, data: object, options = {}): Promise<string> =>
  (await heddle.post('/publish', { event, data, options })).body.id
const queueOf = async (heddle: Heddle, headers = {}): Promise<Queue> =>
  (await heddle.json('/system/queues', { headers })).body.find(({ subscriber }: Queue) => subscriber === WORK)
const acts = (heddle: Heddle) =>
  heddle.logs.flatMap(({ msg, target }) =>
    /An operator acted: (queue|delivery|event\.cancel)/.test(msg) ? [target] : [],
  )

test('queues are shown, listed, paused, and single deliveries run or taken back, over HTTP', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1 })
  const later = await publish(heddle, 'job.wanted', { name: 'later' }, { delayMs: 3_600_000 })
  const first = await publish(heddle, 'job.wanted', { name: 'first' })
  const second = await publish(heddle, 'job.wanted', { name: 'second' })
  await until(async () => (await queueOf(heddle)).running === 1, 'the handler')
  assert.equal((await queueOf(heddle)).waiting, 1)
  const { body } = await heddle.json(`${PATH}?payloads=true&search=second&limit=10`)
  assert.deepEqual([body.deliveries[0].id, body.deliveries[0].payload, body.next], [second, { name: 'second' }, null])
  assert.equal((await heddle.json(PATH)).body.deliveries[0].payload, undefined)
  const [found] = (await heddle.json(`${PATH}?id=${later}`)).body.deliveries
  assert.deepEqual([found.id, found.state], [later, 'later'])

  const paused = await heddle.post(`${PATH}/pause`, { event: 'job.wanted' })
  assert.deepEqual([paused.status, paused.body.data.changed], [200, true])
  assert.equal((await heddle.post(`${PATH}/pause`)).body.data.changed, false)
  await until(async () => (await queueOf(heddle)).paused !== null, 'the pause')
  assert.equal((await heddle.post(`${PATH}/resume`)).body.data.changed, true)
  assert.deepEqual((await heddle.post(`${PATH}/${later}/run`)).body, { success: true, data: { id: later, runs: 1 } })
  assert.deepEqual((await heddle.post(`/system/events/${first}/cancel`)).body.data, {
    id: first,
    waiting: 0,
    running: 1,
  })
  assert.deepEqual(acts(heddle), [`job.wanted ${WORK}`, `job.wanted ${WORK}`, `${later} ${WORK}`, first])

  for (const [path, status, says] of [
    ['/system/queues/nobody', 404, /There is no subscriber nobody/],
    [`${PATH}?event=other.event`, 404, /There is no subscriber work\.Jobs\.work of other\.event/],
    [`${PATH}?limit=501`, 422, /limit must be a whole number from 1 to 500, got 501/],
    [`${PATH}?state=any`, 422, /state must be one of waiting, running, later, retrying, blocked, got "any"/],
    [`${PATH}?after=x`, 422, /after must be `next` of a page, got "x"/],
    [`${PATH}?search=a%00b`, 422, /search must be 1 to 1000 characters, and no NUL/],
    [`${PATH}?id=7`, 422, /id must be the id of an event, got "7"/],
  ] as const) {
    const refused = await heddle.json(path)
    assert.equal(refused.status, status, path)
    assert.match(JSON.stringify(refused.body).replaceAll('\\', ''), says)
  }
  assert.equal((await heddle.post(`${PATH}/${first}/run`)).status, 404)
  for (const body of [{}, { caused_too: true }])
    assert.equal((await heddle.post(`/system/events/${first}/cancel`, body)).status, 404)
})

test('a replay of dead letters is shown before, over HTTP', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1 })
  for (const name of ['a', 'b']) await publish(heddle, 'job.ordered', { name, fails: true })
  await until(async () => (await heddle.json('/system/dead-letters')).body.length === 2, 'dead letters')
  const [ids] = (await heddle.json('/system/dead-letters')).body
  const preview = async (query: string) =>
    (await heddle.json(`/system/dead-letters/preview?${query}`)).body.map(
      ({ event, letters, subscribed }: { event: string; letters: number; subscribed: boolean }) => [
        event,
        letters,
        subscribed,
      ],
    )
  assert.deepEqual(await preview('event=job.ordered'), [['job.ordered', 2, true]])
  assert.deepEqual(await preview(`ids=${ids.id}`), [['job.ordered', 1, true]])
  assert.deepEqual(await preview('error=nothing'), [])
  assert.equal((await heddle.json('/system/dead-letters/preview?limit=0')).status, 422)
  assert.equal((await heddle.json('/system/dead-letters')).body.length, 2)
})

test('with a token for reading, queues are shown without payloads, and nothing is changed', async (t) => {
  const env = { SYSTEM_TOKEN: 'w'.repeat(32), SYSTEM_READ_TOKEN: 'r'.repeat(32) }
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })
  const [write, read] = [env.SYSTEM_TOKEN, env.SYSTEM_READ_TOKEN].map((token) => ({ authorization: `Bearer ${token}` }))
  const id = await publish(heddle, 'job.wanted', { name: 'secret' }, { delayMs: 3_600_000 })
  const get = async (query: string, headers = {}) => (await heddle.json(`${PATH}${query}`, { headers })).status
  assert.deepEqual([await get(''), await get('', read), await get('', write)], [401, 200, 200])
  assert.deepEqual([await get('?payloads=true', read), await get('?search=secret', read)], [403, 403])
  assert.equal(await get('?payloads=true', write), 200)
  for (const path of [`${PATH}/pause`, `${PATH}/resume`, `${PATH}/${id}/run`, `/system/events/${id}/cancel`])
    assert.deepEqual([(await heddle.post(path)).status, (await heddle.post(path, {}, read)).status], [401, 403], path)
  assert.equal((await queueOf(heddle, read)).later, 1)
})

test('the page shows queues and their deliveries, pauses, runs and takes back, also by keyboard and on a phone', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1 })
  await publish(heddle, 'job.wanted', { name: 'running' })
  const waiting = await publish(heddle, 'job.wanted', { name: 'waiting' }, { key: 'k' })
  const later = await publish(heddle, 'job.wanted', { name: 'later' }, { delayMs: 3_600_000 })
  const page = await chromium.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'dark' })
  const complaints: string[] = []
  page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())))
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(`${heddle.url}/system/dashboard#queues`)
  const row = page.locator('tr', { hasText: WORK })
  const cell = (label: string) => row.locator(`td[data-label="${label}"]`)
  await until(async () => (await cell('Running').textContent()) === '1', 'the running one')
  assert.deepEqual([await cell('Waiting').textContent(), await cell('Later').textContent()], ['1', '1'])

  // By keyboard: a button asks once before it acts.
  const pauseButton = row.getByRole('button', { name: `Pause job.wanted to ${WORK}` })
  await pauseButton.focus()
  await page.keyboard.press('Enter')
  assert.equal(await pauseButton.textContent(), 'Pause it?')
  await page.keyboard.press('Enter')
  await row.getByText('paused', { exact: true }).waitFor()
  assert.equal((await queueOf(heddle)).paused === null, false)
  await row.getByRole('button', { name: `Resume job.wanted to ${WORK}` }).click()
  await pauseButton.waitFor()

  await row.getByRole('link', { name: WORK }).click()
  await page.locator('.letter', { hasText: waiting }).waitFor()
  assert.match(page.url(), /\?queue=job\.wanted%20work\.Jobs\.work#queues$/)
  await page.getByLabel('Payloads', { exact: true }).check()
  await page.getByText('{"name":"waiting"}').waitFor()
  await page.getByLabel('Which deliveries').selectOption('running')
  await page.getByText(/lane 0: 1 of 2, half/).waitFor()
  await page.getByLabel('Which deliveries').selectOption('later')
  await page.getByRole('button', { name: `Run ${later} now` }).click()
  await page.getByText('No deliveries like that').waitFor()
  await page.getByLabel('Which deliveries').selectOption('waiting')
  await page.getByLabel('Part of the payload').fill('"later"')
  await page.locator('.letter', { hasText: later }).waitFor()
  await until(async () => (await page.locator('.letter').count()) === 1, 'the search')
  const cancel = page.getByRole('button', { name: `Cancel ${later} for all subscribers` })
  await cancel.click()
  await cancel.click()
  await page.getByText(/taken back: 2 waited, 0 ran/).waitFor()

  await page.getByRole('link', { name: 'All queues' }).click()
  await row.waitFor()
  await page.setViewportSize({ width: 400, height: 800 })
  for (const width of [400, 1280]) {
    await page.setViewportSize({ width, height: 800 })
    const outside = `[...document.querySelectorAll('td, th')].filter((cell) => cell.getBoundingClientRect().right > innerWidth).length`
    if (width === 400) assert.equal(await page.evaluate(outside), 0)
  }
  assert.deepEqual(complaints, [])
})
