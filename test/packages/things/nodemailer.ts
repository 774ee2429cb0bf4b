import nodemailer from 'nodemailer'

export default (get: (name: string) => string) => {
  const transport = nodemailer.createTransport(get('TRIAL_SMTP'))
  return async () =>
    (await transport.sendMail({ from: 'a@example.com', to: 'b@example.com', subject: 'Loom', text: 'woven' })).response
}
