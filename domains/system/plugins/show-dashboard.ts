import { PagePlugin } from '../page-plugin.ts'

/** The page at `/system/dashboard` and its files. What it shows comes from `/system/dashboard/stream`. */
export default class ShowDashboard extends PagePlugin {
  static override thread = 'primary' as const

  override async onBoot() {
    await this.files.read('dashboard')
    const tags = ['system']
    this.http.addEndpoint('/system/dashboard', 'GET', this.showPage, { tags, summary: 'What the process does, live' })
    this.http.addEndpoint('/system/dashboard/requests', 'GET', this.showPage, {
      tags,
      summary: 'The requests and jobs',
    })
    this.http.addEndpoint('/system/dashboard/requests/:id', 'GET', this.showPage, { tags, summary: 'One of them' })
    this.http.addEndpoint('/system/dashboard/:file', 'GET', this.showFile, { tags, summary: 'What that page loads' })
  }
}
