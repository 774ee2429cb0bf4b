import { type Browser, chromium } from 'playwright-core'
import { programFor, type ServerOwner } from './servers/provide.ts'

export type { Browser, Locator, Page } from 'playwright-core'

/** Without a sandbox: there is none for root, and the tests open no page but their own. */
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']

/**
 * A real Chromium that ends with the test.
 * @returns null where none can be had: the test is skipped then, or has failed with `CI=true`
 */
export async function browser(t: ServerOwner): Promise<Browser | null> {
  const executablePath = await programFor(t, 'chromium')
  if (executablePath === null) return null
  const started = await chromium.launch({ executablePath, args: ARGS })
  t.after(() => started.close())
  return started
}
