-- Reports of a user in the order of their ids, for the export. Only an addition.

ALTER TABLE report
  ADD KEY by_reporter (reporter_id, id);
