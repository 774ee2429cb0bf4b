import { type Browser, chromium } from 'playwright-core'

export default (get: (name: string) => string) => {
  // A browser that is killed leaves folders: here they are in nobody's way.
  process.env.TMPDIR = get('TRIAL_FOLDER')
  const executablePath = get('TRIAL_CHROMIUM')
  let browser: Promise<Browser> | undefined
  return async () => {
    browser ??= chromium.launch({
      executablePath,
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    })
    const page = await (await browser).newPage()
    await page.setContent('<h1>Loom</h1>')
    const text = await page.textContent('h1')
    await page.close()
    return text
  }
}
