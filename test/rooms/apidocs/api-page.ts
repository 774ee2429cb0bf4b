import { type TestContext, test } from 'node:test'
import { type Browser, browser, type Locator, type Page } from '../../support/browser.ts'
import type { Heddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { PAGE } from './fixtures/domains.ts'

export const WAIT_MS = 150_000
export const WIDE = { width: 1280, height: 900 }
export const NARROW = { width: 400, height: 800 }

/** The page of the API in a tab, and what went wrong in it. */
export interface Opened {
  page: Page
  /** Errors of the console and of the page. */
  faults: string[]
  hosts: Set<string>
}

/** Tests of the page in a real browser, on the service that all of them share. */
export function testPage(title: string, run: (t: TestContext, heddle: Heddle, tab: Opened) => Promise<void>): void {
  const service = shareService(PAGE)
  test(title, async (t) => {
    const chromium = await browser(t)
    if (chromium !== null) await run(t, service(), await openTab(chromium))
  })
}

/** One tab for all tests: each of its own would be a process more. What it has seen is that of the page that stands in it. */
export async function openTab(chromium: Browser): Promise<Opened> {
  const page = await chromium.newPage({ viewport: WIDE })
  page.setDefaultTimeout(WAIT_MS)
  const tab: Opened = { page, faults: [], hosts: new Set() }
  page.on('console', (message) => message.type() === 'error' && tab.faults.push(message.text()))
  page.on('pageerror', (error) => tab.faults.push(error.message))
  page.on('requestfailed', (request) => tab.faults.push(`${request.url()} failed`))
  page.on('request', (request) => tab.hosts.add(new URL(request.url()).host))
  return tab
}

/** Opens the page of the API anew and waits for its operations. @param rest of the address: `#getUsersById` */
export async function open(tab: Opened, { url }: Heddle, rest = ''): Promise<Opened> {
  const { page } = tab
  // With another hash alone the page would stay.
  await page.goto('about:blank')
  tab.faults = []
  tab.hosts = new Set()
  await page.goto(`${url}/system/docs${rest}`)
  await page.locator('.card').first().waitFor({ state: 'attached' })
  return tab
}

export async function textOf(locator: Locator): Promise<string> {
  return (await locator.textContent()) ?? ''
}

/** A picture of what the page shows, where `SCREENSHOTS` names a folder for it. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS
  if (folder === undefined) return
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    for (const [size, viewport] of Object.entries({ wide: { width: 1440, height: 900 }, narrow: NARROW })) {
      await page.setViewportSize(viewport)
      await page.screenshot({ path: `${folder}/${name}-${colorScheme}-${size}.png` })
    }
  }
  await page.setViewportSize(WIDE)
}
