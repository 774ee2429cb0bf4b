import pino from 'pino'

export default (get: (name: string) => string) => {
  // A thread of its own.
  const transport = pino.transport({ target: 'pino/file', options: { destination: `${get('TRIAL_FOLDER')}/pino.log` } })
  const log = pino(transport)
  return () =>
    new Promise((resolve, reject) => {
      log.info({ word: 'loom' }, 'woven')
      log.flush((error) => (error ? reject(error) : resolve('logged')))
    })
}
