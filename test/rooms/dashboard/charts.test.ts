import assert from 'node:assert/strict'
import { get } from 'node:http'
import { test } from 'node:test'
import { browser, type Page } from '../../support/browser.ts'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { startBakery, times } from './bakery.ts'

/** Pixels of a colour in each chart: marks are drawn, and have no elements. */
const marked = (page: Page, variable: string): Promise<number[]> =>
  page.evaluate(`
    [...document.querySelectorAll('.charts canvas')].map((canvas) => {
      const probe = document.createElement('canvas').getContext('2d')
      probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('${variable}').trim()
      probe.fillRect(0, 0, 1, 1)
      const [r, g, b] = probe.getImageData(0, 0, 1, 1).data
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
      let found = 0
      for (let n = 0; n < data.length; n += 4) if (data[n] === r && data[n + 1] === g && data[n + 2] === b) found++
      return found
    })`)

/** Without the parsing of `fetch`, which unpacks. */
const raw = (service: Heddle, path: string, headers: Record<string, string>) =>
  new Promise<{ status: number; headers: Record<string, unknown>; bytes: number }>((resolve, reject) => {
    get(`${service.url}${path}`, { headers }, (response) => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, bytes }))
    }).on('error', reject)
  })

test('the charts and the files of the pages', async (t) => {
  const { service, slower } = await startBakery(t, { HISTORY_ENABLED: 'false' })

  await t.test('files come compressed, and not again while they are the same', async () => {
    for (const path of [
      '/system/dashboard',
      '/system/dashboard/main.js',
      '/system/dashboard/uplot.js',
      '/system/docs',
    ]) {
      const plain = await raw(service, path, {})
      assert.equal(plain.headers['content-encoding'], undefined)
      for (const coding of ['br', 'gzip']) {
        const packed = await raw(service, path, { 'accept-encoding': `${coding}, identity` })
        assert.equal(packed.headers['content-encoding'], coding, path)
        assert.ok(packed.bytes < plain.bytes * 0.7, `${path}: ${packed.bytes} of ${plain.bytes}`)
        const tag = packed.headers.etag as string
        const again = await raw(service, path, { 'accept-encoding': coding, 'if-none-match': tag })
        assert.deepEqual([again.status, again.bytes], [304, 0], path)
      }
    }
    const refused = await raw(service, '/system/dashboard/main.js', { 'accept-encoding': 'br;q=0, gzip;q=0.5' })
    assert.equal(refused.headers['content-encoding'], 'gzip')
  })

  const chromium = await browser(t)
  if (chromium === null) return
  const page = await chromium.newPage({ viewport: { width: 1280, height: 900 } })
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(String(error)))
  let lost = 0
  // Without what stands behind the name the second time.
  await page.route('**/uplot.js', (route) => {
    lost++
    return route.abort()
  })
  await page.goto(`${service.url}/system/dashboard#charts`)

  await t.test('what draws them is asked for again when it did not come', async () => {
    await page.locator('.charts canvas').nth(3).waitFor()
    assert.equal(lost, 1)
  })

  await t.test('a reload and the death of a lane are marks on every chart, and lines below', async () => {
    await times(5, () => service.fetch('/bread'))
    await page.getByText('The process started').waitFor()
    assert.deepEqual(await marked(page, '--info'), [0, 0, 0, 0])
    await slower(5)
    await page.getByText('The lanes were reloaded').waitFor()
    await until(async () => (await marked(page, '--info')).every((pixels) => pixels > 20), 'marks of the reload')
    await service.fetch('/oven').catch(() => {})
    await page.getByText(/Lane \d died/).waitFor()
    await until(async () => (await marked(page, '--bad')).every((pixels) => pixels > 20), 'marks of the death')
  })

  await t.test('in the other colours the charts are drawn in those', async () => {
    await page.emulateMedia({ colorScheme: 'dark' })
    await until(async () => (await marked(page, '--info')).every((pixels) => pixels > 20), 'marks in the dark')
  })
  assert.deepEqual(faults, [])
})
