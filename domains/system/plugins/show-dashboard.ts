import { plugin } from '#heddle'
import { libraryFile, PageFiles } from '../page-files.ts'

/** uPlot draws the charts. */
const uPlot = (name: string): URL => libraryFile(name, () => new URL(`./${name}`, import.meta.resolve('uplot')))

/** The page at `/system/dashboard` and its files. What it shows comes from `/system/dashboard/stream`. */
export default plugin(
  async ({ http }) => {
    const files = await PageFiles.of('dashboard')
    await files.add('uplot.js', uPlot('uPlot.esm.js'))
    await files.add('uplot.css', uPlot('uPlot.min.css'))
    const page = { tags: ['system'], etag: true }
    http.get(
      '/system/dashboard',
      {
        ...page,
        summary: 'What the process does, live',
        description: 'A page: load, latencies, events, failures and lanes.',
      },
      files.showPage,
    )
    http.get(
      '/system/dashboard/requests',
      { ...page, summary: 'The requests and jobs', description: 'A page with the newest, and filters.' },
      files.showPage,
    )
    http.get(
      '/system/dashboard/requests/:id',
      {
        ...page,
        summary: 'A request or job',
        description: 'A page with what it did and what it has caused.',
      },
      files.showPage,
    )
    http.get('/system/dashboard/:file', PageFiles.ROUTE, files.showFile)
  },
  { thread: 'primary' },
)
