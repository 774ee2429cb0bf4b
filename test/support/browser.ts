import { type Browser, chromium } from 'playwright-core'
import { endWithProcess } from './process-end.ts'
import { programFor, type ServerOwner } from './servers/provide.ts'

export type { Browser, Locator, Page } from 'playwright-core'

/** For what a page shows at once on an idle machine: a busy one may give it a tenth of a core. */
const PAGE_WAIT_MS = 150_000

/** Without a sandbox: there is none for root, and the tests open no page but their own. */
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']

let shared: Promise<Browser> | undefined

/**
 * A real Chromium, one for all tests of a process. What a test has opened in it is closed with the test.
 * @returns null where none can be had: the test is skipped then, or has failed with `CI=true`
 */
export async function browser(t: ServerOwner): Promise<Browser | null> {
  const executablePath = await programFor(t, 'chromium')
  if (executablePath === null) return null
  shared ??= launch(executablePath)
  const started = await shared
  t.after(async () => {
    for (const context of started.contexts()) await context.close()
  })
  return started
}

async function launch(executablePath: string): Promise<Browser> {
  const started = await chromium.launch({ executablePath, args: ARGS })
  endWithProcess(() => started.close())
  const newContext = started.newContext.bind(started)
  started.newContext = async (options) => {
    const context = await newContext(options)
    context.setDefaultTimeout(PAGE_WAIT_MS)
    return context
  }
  return started
}
