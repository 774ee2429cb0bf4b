// npm run pictures: makes the pictures of the pages. A started shop is photographed, and the last figures are drawn.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, browser } from '../support/browser.ts'
import { endShared } from '../support/process-end.ts'
import { drawPeers, gridOfPage, gridOfRun, THEMES } from './charts.ts'
import { withPalette } from './palette.ts'
import { PicturedShop } from './shop.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDER = join(ROOT, 'src/guides/pictures')
const LAST_RUN = join(ROOT, 'bench/results/latest.json')
const VIEWPORT = { width: 1280, height: 880 }
/** A host of pictures shows no more at once. */
const PICTURE_MAX_BYTES = 200 * 1024

/** Ends what was started, the last one first. */
const ends: (() => Promise<void>)[] = []
const owner = {
  after: (end: () => Promise<void>) => void ends.unshift(end),
  skip: (reason: string) => {
    throw new Error(`The pages cannot be photographed: ${reason}`)
  },
}

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true })
  try {
    draw()
    const chromium = (await browser(owner))!
    const shop = await PicturedShop.open(owner)
    const request = await shop.serveCustomers()
    for (const theme of THEMES) await photograph(chromium, `${shop.url}/system/dashboard/requests/${request}`, theme)
  } finally {
    await endShared()
    for (const end of ends) await end()
  }
}

/** Charts of the last run of the bench on this machine, else of the table that stands in its page. */
function draw(): void {
  const page = gridOfPage(readFileSync(join(ROOT, 'bench/README.md'), 'utf8'))
  const run = existsSync(LAST_RUN) ? gridOfRun(JSON.parse(readFileSync(LAST_RUN, 'utf8'))) : null
  console.log(`charts of ${run === null ? 'the table in bench/README.md' : LAST_RUN}`)
  for (const theme of THEMES) save(`peers-${theme}.svg`, drawPeers(run ?? page, theme))
}

async function photograph(chromium: Browser, address: string, theme: (typeof THEMES)[number]): Promise<void> {
  const page = await chromium.newPage({ viewport: VIEWPORT, colorScheme: theme })
  await page.goto(address)
  await page.getByText('mail.sent').first().waitFor()
  // A figure that has not come yet.
  await page.locator('.figure strong', { hasText: '–' }).first().waitFor({ state: 'detached' })
  save(`requests-${theme}.png`, withPalette(await page.screenshot({ animations: 'disabled' })))
  await page.close()
}

function save(name: string, content: string | Buffer): void {
  const bytes = Buffer.byteLength(content)
  if (bytes > PICTURE_MAX_BYTES) throw new Error(`${name} has ${bytes} bytes, of ${PICTURE_MAX_BYTES} at most`)
  writeFileSync(join(FOLDER, name), content)
  console.log(`${name.padEnd(22)}${Math.ceil(bytes / 1024)} KiB`)
}

main()
