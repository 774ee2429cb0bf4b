import winston from 'winston'

export default (get: (name: string) => string) => {
  const file = new winston.transports.File({ filename: `${get('TRIAL_FOLDER')}/winston.log` })
  const log = winston.createLogger({ transports: [file] })
  return () =>
    new Promise((resolve) => {
      file.once('logged', () => resolve('logged'))
      log.info('woven', { word: 'loom' })
    })
}
