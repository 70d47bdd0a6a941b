"""The official OpenAI client: what it makes of our refusals, and of upstreams that fail."""

import asyncio
import unittest

import openai

from test_openai import ASK, TEXT
from world import KEY, PATIENCE, end, world


def tearDownModule():
    end()


class Errors(unittest.TestCase):
    def setUp(self):
        self.client = self.make()

    def make(self, **more):
        settings = {"base_url": world().v1, "api_key": KEY, "timeout": PATIENCE, "max_retries": 0} | more
        client = openai.OpenAI(**settings)
        self.addCleanup(client.close)
        return client

    def chat(self, model, client=None, **more):
        client = client or self.client
        return client.chat.completions.with_raw_response.create(model=model, messages=ASK, **more)

    def fails(self, kind, *arguments, **more):
        """What is raised, of exactly this type."""
        with self.assertRaises(kind) as caught:
            self.chat(*arguments, **more)
        self.assertIs(type(caught.exception), kind)
        return caught.exception

    def told(self, error):
        """What every one of our answers has."""
        self.assertTrue(error.request_id)
        self.assertTrue(error.body["message"].endswith("."))
        return error.status_code, error.code, error.type

    def test_429_says_when_to_come_back(self):
        raw = self.chat("one")
        self.assertEqual(raw.parse().choices[0].message.content, TEXT)
        self.assertTrue(raw.headers["x-request-id"])
        error = self.fails(openai.RateLimitError, "one")
        self.assertEqual(self.told(error), (429, "rate_limited", "rate_limit_error"))
        self.assertIn(int(error.response.headers["retry-after"]), range(1, 61))

    def test_429_retried_after_what_it_says_comes_through_at_once(self):
        for _ in range(200):
            try:
                self.chat("sixty")
            except openai.RateLimitError as error:
                self.assertEqual(error.response.headers["retry-after"], "1")
                break
        else:
            self.fail("no limit was met")
        # The official client waits as long as it is told to, and no longer.
        raw = self.chat("sixty", self.make(max_retries=2))
        self.assertEqual(raw.parse().choices[0].message.content, TEXT)
        self.assertLessEqual(raw.retries_taken, 1)

    def test_402_is_not_retried(self):
        client = self.make(max_retries=2)
        with self.assertRaises(openai.APIStatusError) as caught:
            for _ in range(20):
                self.chat("dear", client, max_completion_tokens=12)
        error = caught.exception
        self.assertEqual(self.told(error), (402, "budget_exhausted", "insufficient_quota"))
        self.assertIn(int(error.response.headers["retry-after"]), range(1, 86_401))
        self.assertEqual(error.request.headers["x-stainless-retry-count"], "0")

    def test_503_of_a_full_bulkhead_ends_with_the_call_that_fills_it(self):
        held = self.client.chat.completions.create(
            model="narrow", messages=ASK, stream=True, extra_headers={"x-fault": "stall:1"}
        )
        next(held)
        error = self.fails(openai.InternalServerError, "narrow")
        self.assertEqual(self.told(error), (503, "full", "server_error"))
        # The client comes back by itself; the last request tells how often.
        error = self.fails(openai.InternalServerError, "narrow", self.make(max_retries=1))
        self.assertEqual(error.request.headers["x-stainless-retry-count"], "1")
        held.close()
        raw = self.chat("narrow", self.make(max_retries=3))
        self.assertEqual(raw.parse().choices[0].message.content, TEXT)

    def test_503_of_an_open_breaker(self):
        # The first failure is the upstream's own.
        error = self.fails(openai.InternalServerError, "broken", extra_headers={"x-fault": "500"})
        self.assertEqual((error.status_code, error.code), (500, None))
        # There is no other target: one call at a time finds out whether it is back.
        probe = self.client.chat.completions.create(
            model="broken", messages=ASK, stream=True, extra_headers={"x-fault": "stall:1"}
        )
        self.addCleanup(probe.close)
        error = self.fails(openai.InternalServerError, "broken")
        self.assertEqual(self.told(error), (503, "open", "server_error"))
        # A minute, and up to a half more by chance.
        self.assertIn(int(error.response.headers["retry-after"]), range(1, 91))

    def test_504_when_the_time_is_over(self):
        error = self.fails(openai.InternalServerError, "late")
        self.assertEqual(self.told(error), (504, "timeout_total", "server_error"))

    def test_own_timeout_of_the_client(self):
        self.fails(openai.APITimeoutError, "late", self.make(timeout=0.5))
        seen = world().seen(lambda seen: seen["model"] == "fault:hang" and seen["ended"])
        self.assertEqual(seen["ended"], "disconnected")

    def test_401_and_404(self):
        error = self.fails(openai.AuthenticationError, "chat", self.make(api_key="sk-other"))
        self.assertEqual(self.told(error), (401, "invalid_api_key", "authentication_error"))
        error = self.fails(openai.NotFoundError, "unheard-of")
        self.assertEqual(self.told(error), (404, "model_not_found", "invalid_request_error"))

    def test_errors_of_the_upstream_come_as_they_are(self):
        error = self.fails(openai.BadRequestError, "chat", extra_headers={"x-fault": "context-length"})
        self.assertEqual(error.code, "context_length_exceeded")
        error = self.fails(openai.BadRequestError, "chat", extra_headers={"x-fault": "content-policy"})
        self.assertEqual(error.code, "content_policy_violation")

    def test_async_fifty_at_once_are_answered_or_refused(self):
        async def ask():
            settings = {"base_url": world().v1, "api_key": KEY, "timeout": PATIENCE, "max_retries": 0}
            async with openai.AsyncOpenAI(**settings) as client:
                asked = (client.chat.completions.create(model="narrow", messages=ASK) for _ in range(50))
                return await asyncio.gather(*asked, return_exceptions=True)

        got = asyncio.run(ask())
        refused = [one for one in got if isinstance(one, Exception)]
        self.assertLess(len(refused), 50)
        self.assertEqual({(type(one), one.code) for one in refused}, {(openai.InternalServerError, "full")})
        for one in got:
            if one not in refused:
                self.assertEqual(one.choices[0].message.content, TEXT)

    def test_async_refusals(self):
        async def code(key, model):
            settings = {"base_url": world().v1, "api_key": key, "timeout": PATIENCE, "max_retries": 0}
            async with openai.AsyncOpenAI(**settings) as client:
                try:
                    await client.chat.completions.with_raw_response.create(model=model, messages=ASK)
                except openai.APIStatusError as error:
                    return type(error), error.code

        for key, model, wanted in [
            ("sk-other", "chat", (openai.AuthenticationError, "invalid_api_key")),
            (KEY, "unheard-of", (openai.NotFoundError, "model_not_found")),
            (KEY, "late", (openai.InternalServerError, "timeout_total")),
        ]:
            self.assertEqual(asyncio.run(code(key, model)), wanted)

    def read(self, fault, **more):
        """What a stream says before it fails."""
        said = []
        stream = self.client.chat.completions.create(
            model="chat", messages=ASK, stream=True, extra_headers={"x-fault": fault}, **more
        )
        try:
            for chunk in stream:
                said.append(chunk.choices[0].delta.content or "")
        except Exception as error:
            return "".join(said), error
        return "".join(said), None

    def test_stream_that_breaks_off_is_no_whole_answer(self):
        said, error = self.read("cut:3")
        self.assertTrue("w0 w1 w2 ".startswith(said), said)
        self.assertIs(type(error), openai.APIConnectionError)

    def test_error_amid_a_stream(self):
        said, error = self.read("error-event:3")
        self.assertEqual(said, "w0 w1 w2 ")
        self.assertIsInstance(error, openai.APIError)
        self.assertEqual(error.code, "server_error")


if __name__ == "__main__":
    unittest.main()
