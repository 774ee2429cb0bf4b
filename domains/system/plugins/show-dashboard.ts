import { libraryFile } from '../page-files.ts'
import { PagePlugin } from '../page-plugin.ts'

/** uPlot draws the charts. */
const uPlot = (name: string): URL => libraryFile(name, () => new URL(`./${name}`, import.meta.resolve('uplot')))

/** The page at `/system/dashboard` and its files. What it shows comes from `/system/dashboard/stream`. */
export default class ShowDashboard extends PagePlugin {
  static override thread = 'primary' as const

  override async onBoot() {
    await this.files.read('dashboard')
    await this.files.add('uplot.js', uPlot('uPlot.esm.js'))
    await this.files.add('uplot.css', uPlot('uPlot.min.css'))
    const page = { tags: ['system'], etag: true }
    this.http.addEndpoint('/system/dashboard', 'GET', this.showPage, {
      ...page,
      summary: 'What the process does, live',
      description: 'A page: load, latencies, events, failures and lanes.',
    })
    this.http.addEndpoint('/system/dashboard/requests', 'GET', this.showPage, {
      ...page,
      summary: 'The requests and jobs',
      description: 'A page with the newest, and filters.',
    })
    this.http.addEndpoint('/system/dashboard/requests/:id', 'GET', this.showPage, {
      ...page,
      summary: 'A request or job',
      description: 'A page with what it did and what it has caused.',
    })
    this.http.addEndpoint('/system/dashboard/:file', 'GET', this.showFile, {
      ...page,
      summary: 'What that page loads',
      description: 'Scripts, styles and pictures of the page.',
    })
  }
}
