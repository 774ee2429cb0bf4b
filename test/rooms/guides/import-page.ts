import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { browser, type Locator, type Page } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import type { Reader } from './reader.ts'

const ROWS = 50_000
/** Starts are slow while many tests run. */
const WAIT_MS = 180_000

/** The page of the guide to background work in a real browser: the bar and the button over a reload and the end of the process. */
export async function watchImports(t: TestContext, reader: Reader): Promise<void> {
  const chromium = await browser(t)
  if (chromium === null) return t.skip('there is no chromium')
  const address = `http://localhost:${reader.ports.get('8000')}/import/`
  const page = await (await chromium.newContext()).newPage()
  await page.goto(address)

  await start(page, join(reader.cwd, 'prices.csv'))
  await runsBehind(page, 0)
  await page.reload()
  await runsBehind(page, 0)

  const other = await (await chromium.newContext()).newPage()
  await other.goto(page.url())
  await says(other, 'You have no such import')

  const before = await rowsOf(page)
  assert.ok(before < ROWS, 'the import is not over when the process is killed')
  await reader.serve('npm run dev', 'killed')
  await runsBehind(page, before)
  await until(() => /Importing from row \d+/.test(reader.log), 'the next process has begun', WAIT_MS)
  const [, first] = /Importing from row (\d+)/.exec(reader.log)!
  assert.ok(
    Number(first) >= before && Number(first) < ROWS,
    `the next process begins at ${first} and not before ${before}`,
  )
  await says(page, 'done')
  assert.equal(await rowsOf(page), ROWS)
  await page.reload()
  await says(page, 'done')
  assert.match(await priceOf(reader, `sku-${ROWS - 1}`), /"cents":50099/)

  await page.goto(address)
  const others = Array.from({ length: ROWS }, (_, n) => `new-${n},${n}`).join('\n')
  await start(page, { name: 'others.csv', mimeType: 'text/csv', buffer: Buffer.from(others) })
  await runsBehind(page, 0)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await says(page, 'cancelled')
  assert.ok((await rowsOf(page)) < ROWS)
  await page.reload()
  await says(page, 'cancelled')
  assert.match(await priceOf(reader, 'new-0'), /"cents":0/, 'rows that were committed stay')
  assert.match(await priceOf(reader, `new-${ROWS - 1}`), /"data":null/)
}

async function start(page: Page, file: Parameters<Locator['setInputFiles']>[0]): Promise<void> {
  await page.getByLabel('Prices').setInputFiles(file)
  await page.getByRole('button', { name: 'Import' }).click()
}

async function priceOf(reader: Reader, sku: string): Promise<string> {
  return (await reader.run(`curl localhost:${reader.ports.get('8000')}/prices/${sku}`)).output
}

const rowsOf = (page: Page): Promise<number> => page.evaluate('document.querySelector("progress").value')

/** The page does not allow `eval`, which `waitForFunction` uses. */
const runsBehind = (page: Page, row: number) =>
  until(
    async () => (await page.locator('output').textContent()) === 'running' && (await rowsOf(page)) > row,
    `the bar is behind row ${row}`,
    WAIT_MS,
  )

const says = (page: Page, text: string) => page.locator('output', { hasText: text }).waitFor({ timeout: WAIT_MS })

interface Hook {
  customer: string
  number: number
  status: number
  at: number
}

/** What the receiver of the guide has got keeps to the limit of a customer, and nobody has waited for another one. */
export async function checkHooks(reader: Reader): Promise<void> {
  const { output } = await reader.run(`curl localhost:${reader.ports.get('8025')}`)
  const hooks: Hook[] = JSON.parse(output)
  const of = (wanted: string): Hook[] => hooks.filter(({ customer }) => customer === wanted)
  assert.deepEqual(
    of('ada')
      .map(({ number }) => number)
      .sort((a, b) => a - b),
    Array.from({ length: 30 }, (_, n) => n + 1),
  )
  // Five a second: 5 seconds between the first and the last. A request may be on its way for a while.
  const tookMs = of('ada').at(-1)!.at - of('ada')[0]!.at
  assert.ok(tookMs > 4000, `30 hooks took ${tookMs} ms`)
  assert.ok(hooks.findIndex(({ customer }) => customer === 'grace') < 21, 'grace has not waited for ada')
  const busy = of('busy')
  assert.deepEqual(
    busy.map(({ status }) => status),
    [429, 200],
  )
  assert.ok(busy[1]!.at - busy[0]!.at >= 1900, 'the second came after the time of Retry-After')
}
