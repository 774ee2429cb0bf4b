import { plugin } from '#heddle'

const options = {
  tags: ['system'],
  summary: 'Whether the process is alive',
  description: '200 as long as the process can answer. A process manager starts it again when nothing comes.',
}

/** For a supervisor: answers as long as the event loop of the listener's thread runs. Restart a process that does not answer. */
export default plugin(
  ({ http }) => {
    http.get('/system/health/live', options, (_data, { operator }) => {
      if (operator === null) return { success: true, data: { live: true } }
      return { success: true, data: { live: true, uptime_sec: Math.round(process.uptime() * 1000) / 1000 } }
    })
  },
  { thread: 'primary' },
)
